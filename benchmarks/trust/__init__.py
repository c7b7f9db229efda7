"""Campaigns that attack the device: what ``caesura bench trust`` runs."""
