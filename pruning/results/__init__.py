"""Results of `explain()` and `report()` and how they are printed."""
