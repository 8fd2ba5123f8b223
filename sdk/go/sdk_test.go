package sdk

import (
	"encoding/json"
	"testing"
)

func TestContentIsThePublishedSplitmixSequence(t *testing.T) {
	// 0xe220a8397b1dcdaf is the first number of splitmix64 with seed 0: its bytes, lowest first, modulo 64.
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
	counts := h.encoded()
	if counts.Min != 0 || counts.Pairs[5][0] < highest || counts.Pairs[5][0] > highest+highest/1000 {
		t.Fatalf("%+v", counts)
	}
	for _, value := range []uint64{1, 999, 2048, 54_321, 987_654_321} {
		if recorded := highestOf(slot(value)); recorded < value || recorded > value+value/1000 {
			t.Fatalf("%d is recorded as %d", value, recorded)
		}
	}
}

func TestSpecsOfAnotherContractOrWithUnknownFieldsAreRefused(t *testing.T) {
	for _, text := range []string{`{"contract":9}`, `{"contract":1}`, `{"contract":3,"threads":0}`, `{"contract":3,"lair":""}`, `no`} {
		if _, err := Parse(text); err == nil {
			t.Fatalf("%s was accepted", text)
		}
	}
	spec, err := Parse(`{"contract":3,"role":"client","layer":"tcp","workload":"rr"}`)
	if err != nil || spec.Connections != 1 || spec.TimeoutNs != 10_000_000_000 {
		t.Fatalf("%+v, %v", spec, err)
	}
}

func TestDoneHasTheFieldsOfTheContract(t *testing.T) {
	window := OpenWindow(&Spec{})
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

func TestRefusalsHaveTheContractsExitStatus(t *testing.T) {
	program := Program{Name: "p", Run: func(s *Spec) (*Done, error) { return nil, Unsupported(s.Workload) }}
	if status := start(program, []string{`{"contract":3,"role":"client","workload":"x"}`}); status != 127 {
		t.Fatalf("unsupported is %d", status)
	}
	if status := start(program, nil); status != 2 {
		t.Fatalf("no spec is %d", status)
	}
}
