package sdk

import (
	"fmt"
	"sort"
	"strings"
)

// The contract's options: every program accepts them, also those that it does not use.
var contractOptions = []string{
	"buffer", "direction", "ends", "interval_us", "mode", "mtu", "nc", "nodelay", "resend", "runtime", "search", "shape",
	"transfers", "tun", "window",
}

// checkOptions refuses an option that neither the contract nor the program has.
func checkOptions(options map[string]string, own []string) error {
	known := append(append([]string{}, contractOptions...), own...)
	sort.Strings(known)
	for name := range options {
		if i := sort.SearchStrings(known, name); i < len(known) && known[i] == name {
			continue
		}
		if nearest := nearest(name, known); nearest != "" {
			return BadSpec(fmt.Sprintf(`"options.%s" is not known; nearest: "%s"`, name, nearest))
		}
		return BadSpec(fmt.Sprintf(`"options.%s" is not known; known: %s`, name, strings.Join(known, ", ")))
	}
	return nil
}

// OneLoop is true for a client that is client and server in one process: the option "ends".
func (s *Spec) OneLoop() bool { return s.Options["ends"] == oneLoop }

const oneLoop = "one-loop"

// checkEnds refuses a form of both ends that is not among those of the program.
func checkEnds(spec *Spec, known []string) error {
	switch ends, there := spec.Options["ends"]; {
	case !there:
		return nil
	case ends != oneLoop:
		return BadSpec(`"options.ends" must be one-loop, not ` + ends)
	case spec.Role != "client" || len(known) == 0 || known[0] != oneLoop:
		return Unsupported("both ends in one loop")
	}
	return nil
}

// nearest returns the name with the least edit distance, or "" if that is more than a third of the letters.
func nearest(name string, known []string) string {
	best, least := "", len(name)/3+1
	for _, candidate := range known {
		if distance := distance(name, candidate); distance < least+1 && (best == "" || distance < least) {
			best, least = candidate, distance
		}
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range []byte(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range []byte(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			for _, other := range []int{row[j] + 1, row[j+1] + 1} {
				if other < cost {
					cost = other
				}
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
