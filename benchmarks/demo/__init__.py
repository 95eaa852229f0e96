"""The demo: star joins on TPC-DS tables, with and without pruning."""
