"""Tests, shelved by what they need: `unit` a room alone, further shelves whole stores, gateways or broken machines."""
