"""What every task shares: datasets, batches, gold links, the LightningDataModule."""
