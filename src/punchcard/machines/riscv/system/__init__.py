"""What a processor with machine mode has around it: devices, a device tree, an image to begin with. No tensor here."""
