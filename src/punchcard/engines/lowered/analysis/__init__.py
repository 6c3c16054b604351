"""What the weights, the layout and a card say about a loop."""
