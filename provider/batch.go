package provider

// batchReading is what has been read of a batch.
type batchReading struct{}
