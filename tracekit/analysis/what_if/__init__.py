"""What another order of the nodes of graphs would take: predictions."""
