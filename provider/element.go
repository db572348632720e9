package provider

// ElementBody is the bytes of an element that [Compiled.Elements] found in d, once a Content-Encoding is undone.
func (c *Compiled) ElementBody(d *Delivery, e Element) []byte {
	r, err := c.batchOf(d, c.batch)
	if err != nil {
		return nil
	}
	return r.body[e.Start:e.End:e.End]
}
