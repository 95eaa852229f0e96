"""The one door to the JVM: sessions, compiled Java classes, logical plans."""
