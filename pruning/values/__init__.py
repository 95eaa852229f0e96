"""Values, their order-preserving encoding, and sets of them."""
