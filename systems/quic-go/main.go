// QUIC by quic-go as a system of linerate (sdk/CONTRACT.md): quic-go SPEC. The protocol is that of performance tests
// (draft-banks-quic-performance): a request begins with the length of its answer, in eight bytes.
//
//	spec -> serve | drive (client.go) -> events
package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/quic-go/quic-go"
	"linerate.dev/sdk"
)

const (
	protocol = "perf"
	// Bytes of the length that a request begins with.
	prefix = 8
	// What answers are made of: the same piece again and again.
	piece = 64 << 10
)

func main() {
	sdk.Start(sdk.Program{
		Name:      "quic-go",
		Version:   version(),
		Roles:     []string{"client", "server"},
		Layers:    []string{"quic"},
		Workloads: []string{"crr", "rr"},
		Options:   []string{"response", "handshake", "streams"},
		Run:       run,
	})
}

// version returns that of the library as linked, and Go's.
func version() string {
	if build, there := debug.ReadBuildInfo(); there {
		for _, dependency := range build.Deps {
			if dependency.Path == "github.com/quic-go/quic-go" {
				return strings.TrimPrefix(dependency.Version, "v") + " (" + runtime.Version() + ")"
			}
		}
	}
	return ""
}

func run(spec *sdk.Spec) (*sdk.Done, error) {
	if spec.Layer != "quic" || (spec.Workload != "rr" && spec.Workload != "crr") || spec.Rate != 0 {
		return nil, sdk.Unsupported(fmt.Sprintf("%s of layer %q and workload %q at rate %v", spec.Role, spec.Layer, spec.Workload, spec.Rate))
	}
	runtime.GOMAXPROCS(spec.Threads)
	switch spec.Role {
	case "server":
		return nil, serve(spec)
	case "client":
		return drive(spec)
	}
	return nil, sdk.Unsupported("role " + spec.Role)
}

// fullOnly is the option handshake: false if sessions are resumed.
func fullOnly(spec *sdk.Spec) (bool, error) {
	switch kind := spec.Options["handshake"]; kind {
	case "", "full":
		return true, nil
	case "resumed":
		return false, nil
	default:
		return true, sdk.Unsupported(fmt.Sprintf(`"options.handshake" must be full or resumed, not %q`, kind))
	}
}

// serve answers requests until SIGTERM: a goroutine for each connection and for each stream.
func serve(spec *sdk.Spec) error {
	if spec.Listen == "" {
		return sdk.BadSpec(`"listen" is missing`)
	}
	pair, err := tls.X509KeyPair([]byte(spec.TLS.Certificate), []byte(spec.TLS.Key))
	if err != nil {
		return sdk.BadSpec(`"tls": ` + err.Error())
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, Certificates: []tls.Certificate{pair},
	}
	if config.SessionTicketsDisabled, err = fullOnly(spec); err != nil {
		return err
	}
	terminated := sdk.Terminated()
	listener, err := quic.ListenAddr(spec.Listen, config, nil)
	if err != nil {
		return err
	}
	sdk.Ready(listener.Addr().String())
	content := sdk.Page(piece)
	go func() {
		for {
			connection, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			go answerAll(connection, content)
		}
	}()
	<-terminated
	return nil
}

// answerAll serves a connection until its end: a peer that vanishes ends its own only.
func answerAll(connection *quic.Conn, content []byte) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go answer(stream, content)
	}
}

func answer(stream *quic.Stream, content []byte) {
	var length [prefix]byte
	if _, err := io.ReadFull(stream, length[:]); err != nil {
		stream.CancelWrite(0)
		return
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		stream.CancelWrite(0)
		return
	}
	for left := binary.BigEndian.Uint64(length[:]); left > 0; {
		count := min(left, uint64(len(content)))
		if _, err := stream.Write(content[:count]); err != nil {
			return
		}
		left -= count
	}
	_ = stream.Close()
}
