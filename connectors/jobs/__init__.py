"""Spark jobs of builds: threads, tags, deadlines, progress, executed plans."""
