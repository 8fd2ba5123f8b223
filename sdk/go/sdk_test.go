package sdk

import (
	"encoding/json"
	"testing"
)

func TestContentIsThePublishedSequence(t *testing.T) {
	// 0xe220a8397b1dcdaf is splitmix64's first number of seed 0: its bytes, lowest first, modulo 64.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for i, b := range []byte{0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2} {
		if Page(8)[i] != alphabet[b&63] {
			t.Fatalf("byte %d of the page is %c", i, Page(8)[i])
		}
	}
	content := NewContent(100)
	if got := content.At(3*Period-1, 2); got[0] != Page(Period)[Period-1] || got[1] != Page(1)[0] {
		t.Fatal("content does not repeat after a period")
	}
	if content.Good(5, append([]byte("!"), content.At(6, 9)...)) != 9 {
		t.Fatal("a wrong byte counts")
	}
}

func TestHistogramKeepsThreeDigits(t *testing.T) {
	h := &Histogram{}
	for _, value := range []uint64{0, 1, 2047, 2048, 123_456, 5_000_000_000_000} {
		h.Record(value)
	}
	counts := h.travel()
	if counts.Min != 0 || counts.Pairs[5][0] < highest || counts.Pairs[5][0] > highest+highest/1000 {
		t.Fatalf("%+v", counts)
	}
	for _, value := range []uint64{1, 999, 2048, 54_321, 987_654_321} {
		if told := highestOf(slot(value)); told < value || told > value+value/1000 {
			t.Fatalf("%d is told as %d", value, told)
		}
	}
}

func TestSpecsOfAnotherContractAreRefused(t *testing.T) {
	for _, text := range []string{`{"contract":9}`, `{"contract":1,"threads":0}`, `no`} {
		if _, err := Parse(text); err == nil {
			t.Fatalf("%s was taken", text)
		}
	}
	spec, err := Parse(`{"contract":1,"role":"client","layer":"tcp","workload":"rr"}`)
	if err != nil || spec.Connections != 1 || spec.TimeoutNs != 10_000_000_000 {
		t.Fatalf("%+v, %v", spec, err)
	}
}

func TestDoneHasTheDocumentedShape(t *testing.T) {
	window := OpenWindow()
	tally := &Tally{}
	tally.Succeed(Now(), Now(), 64)
	tally.Fail("reset")
	line, err := json.Marshal(window.Close([]*Tally{tally, {}}))
	var back map[string]any
	if err != nil || json.Unmarshal(line, &back) != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"operations", "bytes", "start_ns", "end_ns", "errors", "latency", "cpu_ns", "verified"} {
		if _, there := back[field]; !there {
			t.Fatalf("%s is missing in %s", field, line)
		}
	}
	if window.Start() > Now() || back["end_ns"].(float64) < back["start_ns"].(float64) {
		t.Fatal("clocks run backwards")
	}
}

func TestExitStatus(t *testing.T) {
	program := Program{Name: "p", Run: func(s *Spec) (*Done, error) { return nil, Unsupported(s.Workload) }}
	if status := start(program, []string{`{"contract":1,"role":"client","workload":"x"}`}); status != 127 {
		t.Fatalf("unsupported is %d", status)
	}
	if status := start(program, nil); status != 2 {
		t.Fatalf("no spec is %d", status)
	}
}
