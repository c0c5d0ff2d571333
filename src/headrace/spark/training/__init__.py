"""Training sets in Spark: spines, and features at many moments."""
