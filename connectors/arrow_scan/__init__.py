"""A scan that Spark tasks read with pyarrow, testing the join keys first."""
