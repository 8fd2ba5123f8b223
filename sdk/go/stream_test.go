package sdk

import (
	"encoding/binary"
	"io"
	"math"
	"net"
	"sync/atomic"
	"testing"
)

// pair returns both ends of a TCP connection over loopback.
func pair(t *testing.T) (client, server net.Conn) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestTransfersFollowOneAnotherInEachDirection(t *testing.T) {
	for direction, sum := range map[string]uint64{"client-writes": 7_500, "client-reads": 7_500, "both": 15_000} {
		options := map[string]string{"direction": direction, "transfers": "3"}
		spec := &Spec{Workload: "stream", Layer: "tcp", Connect: "-", Size: 1_000, Bytes: 2_500, Options: options}
		service, _ := NewService(spec)
		stream, _ := NewStream(spec)
		stop, err := stream.StopCondition(spec)
		if err != nil {
			t.Fatal(err)
		}
		client, server := pair(t)
		served := make(chan error, 1)
		go func() { served <- service.Serve(service.Channel(server)) }()
		tally, progress := &Tally{}, atomic.Uint64{}
		kind := stream.Drive(NewByteChannel(client, 1_000), stop, tally, &progress)
		if kind != "" || tally.bytes != sum || len(tally.errors) > 0 {
			t.Fatalf("%s: %q, %+v", direction, kind, tally)
		}
		client.Close()
		if err := <-served; err != io.EOF {
			t.Fatal(err)
		}
	}
}

func TestTransfersOfAStreamForATimeAreWhole(t *testing.T) {
	for _, direction := range []string{"client-writes", "client-reads", "both"} {
		spec := &Spec{Workload: "stream", Layer: "tls", Connect: "-", Size: 1_000, Bytes: 2_500, DurationNs: 20_000_000}
		spec.Options = map[string]string{"direction": direction, "transfers": "3"}
		service, _ := NewService(spec)
		stream, _ := NewStream(spec)
		stop, err := stream.StopCondition(spec)
		if err != nil {
			t.Fatal(err)
		}
		client, server := pair(t)
		go func() { _ = service.Serve(service.Channel(server)) }()
		window, tally, progress := OpenWindow(spec), &Tally{}, atomic.Uint64{}
		stop.Start(window)
		kind := stream.Drive(NewByteChannel(client, 1_000), stop, tally, &progress)
		if kind != "" || tally.bytes <= 15_000 || tally.bytes%2_500 != 0 || len(tally.errors) > 0 {
			t.Fatalf("%s: %q, %+v", direction, kind, tally)
		}
		if Now() < window.Start()+spec.DurationNs {
			t.Fatal("it ended early")
		}
	}
}

func TestAServerCountsGoodBytesUpToTheEndOfAStreamByTime(t *testing.T) {
	options := map[string]string{"direction": "client-writes"}
	service, _ := NewService(&Spec{Workload: "stream", Size: 100, Options: options})
	client, server := pair(t)
	go func() { _ = service.Serve(service.Channel(server)) }()
	content := Page(250)
	content[7] ^= 1
	_, _ = client.Write(append(number(math.MaxUint64), content...))
	_ = client.(*net.TCPConn).CloseWrite()
	var good uint64
	if err := binary.Read(client, binary.LittleEndian, &good); err != nil || good != 249 {
		t.Fatal(good, err)
	}
}

func TestAnEarlyEndIsTruncated(t *testing.T) {
	options := map[string]string{"direction": "client-reads"}
	spec := &Spec{Workload: "stream", Layer: "tcp", Connect: "-", Size: 10, Bytes: 100, Options: options}
	stream, _ := NewStream(spec)
	stop, _ := stream.StopCondition(spec)
	client, server := pair(t)
	_, _ = server.Write(Page(30))
	_ = server.(*net.TCPConn).CloseWrite()
	tally, progress := &Tally{}, atomic.Uint64{}
	if kind := stream.Drive(NewByteChannel(client, 10), stop, tally, &progress); kind != "truncated" || tally.bytes != 30 {
		t.Fatal(kind, tally)
	}
}

func TestEndsThatAProgramDoesNotHaveAreRefused(t *testing.T) {
	for _, c := range []struct {
		role, ends string
		known      []string
		want       error
	}{
		{"client", "one-loop", []string{"one-loop"}, nil},
		{"client", "one-loop", nil, Unsupported("both ends in one loop")},
		{"server", "one-loop", []string{"one-loop"}, Unsupported("both ends in one loop")},
		{"client", "two-loops", []string{"one-loop"}, BadSpec(`"options.ends" must be one-loop, not two-loops`)},
	} {
		spec := &Spec{Role: c.role, Options: map[string]string{"ends": c.ends}}
		if err := checkEnds(spec, c.known); err != c.want {
			t.Errorf("%v, not %v", err, c.want)
		}
	}
}

func TestUnknownOptionsAreRefusedWithTheNearestName(t *testing.T) {
	for name, want := range map[string]string{
		"directon": `bad spec: "options.directon" is not known; nearest: "direction"`,
		"sever":    `bad spec: "options.sever" is not known; nearest: "server"`,
		"xyz": `bad spec: "options.xyz" is not known; known: buffer, direction, ends, interval_us, mode, mtu, nc, nodelay, ` +
			`resend, runtime, search, server, shape, transfers, tun, window`,
	} {
		if err := checkOptions(map[string]string{name: ""}, []string{"server"}); err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
	if err := checkOptions(map[string]string{"tun": "", "server": ""}, []string{"server"}); err != nil {
		t.Error(err)
	}
	program := Program{Name: "p", Run: func(*Spec) (*Done, error) { return nil, nil }}
	if status := start(program, []string{`{"contract":3,"role":"server","options":{"no":"1"}}`}); status != 2 {
		t.Errorf("exit status %d", status)
	}
}
