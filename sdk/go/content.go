package sdk

import "bytes"

// Period is the number of bytes after which content repeats.
const Period = 65_536

// Page returns the first size bytes of the content (Steele, Lea, Flood: splitmix64, 2014).
func Page(size int) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	page := make([]byte, size)
	var word uint64
	for i := range page {
		if i%8 == 0 {
			word = (uint64(i/8) + 1) * 0x9e3779b97f4a7c15
			word = (word ^ word>>30) * 0xbf58476d1ce4e5b9
			word = (word ^ word>>27) * 0x94d049bb133111eb
			word ^= word >> 31
		}
		page[i] = alphabet[word>>(8*(i%8))&63]
	}
	return page
}

// Content is the endless content of streams.
type Content struct{ bytes []byte }

// NewContent makes content whose pieces of up to longest bytes are contiguous.
func NewContent(longest int) *Content {
	page := Page(Period)
	all := append([]byte{}, page...)
	for len(all) < Period+longest {
		all = append(all, page...)
	}
	return &Content{all}
}

// At returns length bytes from a position.
func (c *Content) At(position uint64, length int) []byte {
	start := int(position % Period)
	return c.bytes[start : start+length]
}

// Good counts the correct bytes among those received at a position, however many there are.
func (c *Content) Good(position uint64, received []byte) (good uint64) {
	for len(received) > 0 {
		part := received
		if longest := len(c.bytes) - Period; len(part) > longest {
			part = part[:longest]
		}
		good += c.equal(position, part)
		position += uint64(len(part))
		received = received[len(part):]
	}
	return good
}

func (c *Content) equal(position uint64, received []byte) (equal uint64) {
	correct := c.At(position, len(received))
	if bytes.Equal(correct, received) {
		return uint64(len(received))
	}
	for i := range received {
		if received[i] == correct[i] {
			equal++
		}
	}
	return equal
}
