"""Outside programs: finding nsys and having it export reports."""
