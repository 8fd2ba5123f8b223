package sdk

import "bytes"

// Period is how often the content of a stream repeats.
const Period = 65_536

// Page is the first size bytes of the content (Steele, Lea, Flood: splitmix64, 2014).
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

// Content is an endless stream of bytes; pieces of up to the length that it was made for are contiguous.
type Content struct{ bytes []byte }

// NewContent makes content for pieces of up to longest bytes.
func NewContent(longest int) *Content {
	page := Page(Period)
	all := append([]byte{}, page...)
	for len(all) < Period+longest {
		all = append(all, page...)
	}
	return &Content{all}
}

// At is the piece of this length at this position.
func (c *Content) At(position uint64, length int) []byte {
	start := int(position % Period)
	return c.bytes[start : start+length]
}

// Good is how many of the bytes received at a position are the right ones.
func (c *Content) Good(position uint64, received []byte) uint64 {
	wanted := c.At(position, len(received))
	if bytes.Equal(wanted, received) {
		return uint64(len(received))
	}
	good := uint64(0)
	for i := range received {
		if received[i] == wanted[i] {
			good++
		}
	}
	return good
}
