"""The units of the cost model: estimates with bounds, and the rates that turn rows and bytes into seconds."""
