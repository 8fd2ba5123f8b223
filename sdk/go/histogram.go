package sdk

import "math/bits"

const (
	// An hour: larger values count as this one.
	highest = 3_600_000_000_000
	// Three significant digits: exact up to 2,047, then 1,024 buckets for each power of two. An hour is below 2^42.
	half  = 1024
	slots = 33 * half
)

// Histogram is an HDR histogram (Gil Tene) of nanoseconds with three significant digits. Its zero value is empty.
type Histogram struct{ counts [slots]uint64 }

// Counts is a histogram as the contract encodes it.
type Counts struct {
	Pairs [][2]uint64 `json:"pairs"`
	Min   uint64      `json:"min"`
	Max   uint64      `json:"max"`
}

// Record counts one value.
func (h *Histogram) Record(value uint64) {
	if value > highest {
		value = highest
	}
	h.counts[slot(value)]++
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for i, count := range other.counts {
		h.counts[i] += count
	}
}

// encoded returns nil if nothing was recorded.
func (h *Histogram) encoded() *Counts {
	if h == nil {
		return nil
	}
	counts := &Counts{Pairs: [][2]uint64{}}
	for i, count := range h.counts {
		if count > 0 {
			value := highestOf(i)
			if len(counts.Pairs) == 0 {
				counts.Min = value >> shift(value) << shift(value)
			}
			counts.Pairs = append(counts.Pairs, [2]uint64{value, count})
			counts.Max = value
		}
	}
	return counts
}

func shift(value uint64) uint { return uint(bits.Len64(value|2047)) - 11 }

func slot(value uint64) int { return int(shift(value))*half + int(value>>shift(value)) }

// highestOf returns the highest value of a slot.
func highestOf(slot int) uint64 {
	s := 0
	if slot >= 2*half {
		s = slot/half - 1
	}
	return uint64(slot-s*half+1)<<s - 1
}
