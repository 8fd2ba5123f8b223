package sdk

import (
	"net/netip"
	"testing"
)

func TestAFlowCountsLateRepeatedAndDamagedDatagrams(t *testing.T) {
	flow := &Flow{}
	for _, sequence := range []uint64{0, 1, 3, 2, 3, 0, 7, 4, 4} {
		flow.Good(sequence, 100, 10+sequence)
	}
	flow.Damage()
	want := Report{Received: 6, Bytes: 600, Reordered: 2, Duplicates: 3, Damaged: 1, FirstNs: 10, LastNs: 14}
	if flow.Report != want {
		t.Fatalf("%+v, not %+v", flow.Report, want)
	}
	tally := &Tally{}
	tally.Flowed(10, 0, flow.Report, 100)
	if *tally.datagrams != (Datagrams{10, 6, 4, 2, 3, 1}) || tally.verified != 6*92 {
		t.Fatalf("%+v, %d verified", tally.datagrams, tally.verified)
	}
}

func TestAFlowForgetsNumbersOlderThanItsWindow(t *testing.T) {
	flow := &Flow{}
	flow.Good(0, 1, 1)
	flow.Good(datagramWindow, 1, 1) // at the bit of number 0
	flow.Good(1, 1, 1)
	flow.Good(1, 1, 1)
	flow.Good(5*datagramWindow, 1, 1)
	flow.Good(4*datagramWindow+1, 1, 1) // at the bit of number 1, but not it
	if flow.Received != 5 || flow.Duplicates != 1 || flow.Reordered != 2 {
		t.Fatalf("%+v", flow.Report)
	}
}

func TestDatagramsAreParsedByKind(t *testing.T) {
	report := Report{1, 2, 3, 4, 5, 6, 7}
	for _, each := range []struct {
		bytes    []byte
		sequence uint64
		ok       bool
	}{
		{Control(DatagramHello, 0), DatagramHello, true},
		{Control(DatagramWelcome, 0), DatagramWelcome, true},
		{Control(DatagramEnd, 9), DatagramEnd, true},
		{report.Control(), DatagramReport, true},
		{report.Control()[:63], DatagramReport, false},
		{Control(DatagramEnd), DatagramEnd, false},
		{Control(firstControl, 1), firstControl, false},
		{Control(7), 7, true},
		{[]byte("short"), 0, false},
	} {
		if sequence, ok := ParseDatagram(each.bytes); sequence != each.sequence || ok != each.ok {
			t.Errorf("%v is %d, %v", each.bytes, sequence, ok)
		}
	}
	if back := ParseReport(report.Control()); back != report {
		t.Fatalf("%+v", back)
	}
}

func TestTwoServersDoNotAnswerEachOther(t *testing.T) {
	server, peer := NewReceiver(Page(100)), netip.MustParseAddrPort("10.77.1.2:5000")
	for _, asked := range [][]byte{Control(DatagramHello, 0), Control(DatagramEnd, 1)} {
		answer := server.Answer(peer, asked)
		if answer == nil || server.Answer(peer, answer) != nil {
			t.Errorf("%v: %v is answered", asked, answer)
		}
	}
}

func TestAReportThatNoPathCanCauseIsRecognised(t *testing.T) {
	good := Report{Received: 9, Bytes: 900, Duplicates: 20, FirstNs: 5_000, LastNs: 5_700}
	if !good.IsPossible(10, 100, 700) {
		t.Errorf("%+v is possible", good)
	}
	for index := 0; index < 7; index++ {
		wrong := good
		fields := []*uint64{&wrong.Received, &wrong.Bytes, &wrong.Reordered, &wrong.Duplicates, &wrong.Damaged, &wrong.FirstNs, &wrong.LastNs}
		*fields[index] = ^uint64(0)
		if wrong.IsPossible(10, 100, 700) {
			t.Errorf("%+v is not possible", wrong)
		}
	}
}
