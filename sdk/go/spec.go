// Package sdk is what a Go program needs to become a system of linerate (sdk/CONTRACT.md, contract 3): the spec, the
// events, the clock, histograms, content, and both ends of a stream. Only the standard library.
//
//	os.Args[1] -> Start -> Spec -> your program -> Tally per goroutine -> Done -> JSON lines on stdout
package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Contract is the version of the contract that this package implements.
const Contract = 3

// Spec is the task of one process. Absent fields are zero, except those with a default. Fields that Go programs do not use
// are raw: a spec with another field is refused.
type Spec struct {
	Contract    int               `json:"contract"`
	Role        string            `json:"role"`
	Layer       string            `json:"layer"`
	Workload    string            `json:"workload"`
	Listen      string            `json:"listen"`
	Connect     string            `json:"connect"`
	Sources     []string          `json:"sources"`
	Connections int               `json:"connections"`
	Threads     int               `json:"threads"`
	Operations  uint64            `json:"operations"`
	Bytes       uint64            `json:"bytes"`
	DurationNs  uint64            `json:"duration_ns"`
	TimeoutNs   uint64            `json:"timeout_ns"`
	Size        int               `json:"size"`
	Rate        float64           `json:"rate"`
	Options     map[string]string `json:"options"`
	TLS         TLS               `json:"tls"`

	Path     json.RawMessage `json:"path"`
	Expect   json.RawMessage `json:"expect"`
	Arrival  json.RawMessage `json:"arrival"`
	Seed     json.RawMessage `json:"seed"`
	SampleNs json.RawMessage `json:"sample_ns"`
	Request  json.RawMessage `json:"request"`
}

// TLS has PEM texts: the certificate and key of a server, the authority and the expected name of a client.
type TLS struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Authority   string `json:"authority"`
	Name        string `json:"name"`
}

// Timeout is the longest time of one operation.
func (s *Spec) Timeout() time.Duration { return time.Duration(s.TimeoutNs) }

// Source returns the local address of a client's n-th connection; nil where the kernel chooses.
func (s *Spec) Source(n int) net.IP {
	if len(s.Sources) == 0 {
		return nil
	}
	return net.ParseIP(s.Sources[n%len(s.Sources)])
}

// Unsupported ends the program with exit status 127; return it before anything is opened.
type Unsupported string

func (u Unsupported) Error() string { return "unsupported: " + string(u) }

// BadSpec ends the program with exit status 2.
type BadSpec string

func (b BadSpec) Error() string { return "bad spec: " + string(b) }

// Program describes a program.
type Program struct {
	Name string
	// Version of the library under test, from the library itself.
	Version                  string
	Roles, Layers, Workloads []string
	// Words of the option "ends" that the program implements.
	Ends []string
	// Options that the contract does not have.
	Options []string
	// Run runs a task; the result of a client is printed, that of a server is nil.
	Run func(*Spec) (*Done, error)
}

// Start is all of main: it reads the spec, answers describe, runs other roles, and ends the process.
func Start(program Program) {
	os.Exit(start(program, os.Args[1:]))
}

func start(program Program, arguments []string) int {
	err := func() error {
		if len(arguments) != 1 {
			return BadSpec("expected one argument, the spec as JSON (sdk/CONTRACT.md)")
		}
		spec, err := Parse(arguments[0])
		if err != nil {
			return err
		}
		if spec.Role == "describe" {
			described := map[string]any{
				"event": "describe", "name": program.Name, "version": program.Version,
				"roles": program.Roles, "layers": program.Layers, "workloads": program.Workloads,
			}
			if program.Ends != nil {
				described["ends"] = program.Ends
			}
			emit(described)
			return nil
		}
		if err := checkOptions(spec.Options, program.Options); err != nil {
			return err
		}
		if err := checkEnds(spec, program.Ends); err != nil {
			return err
		}
		done, err := program.Run(spec)
		if err == nil && done != nil {
			done.Event = "done"
			emit(done)
		}
		return err
	}()
	var bad BadSpec
	var unsupported Unsupported
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", program.Name, err)
	switch {
	case errors.As(err, &unsupported):
		return 127
	case errors.As(err, &bad):
		return 2
	}
	return 1
}

// Parse reads a spec, and refuses one of another contract.
func Parse(text string) (*Spec, error) {
	spec := &Spec{Connections: 1, Threads: 1, TimeoutNs: 10_000_000_000}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(spec); err != nil {
		return nil, BadSpec("the spec is not valid: " + err.Error())
	}
	if spec.Contract != Contract {
		return nil, BadSpec(fmt.Sprintf("the spec has contract %d, this program implements %d", spec.Contract, Contract))
	}
	if spec.Connections < 1 || spec.Threads < 1 || spec.TimeoutNs < 1 || spec.Size < 0 {
		return nil, BadSpec(`"connections", "threads" and "timeout_ns" must be above 0, "size" not below`)
	}
	return spec, nil
}

// Ready prints that a server accepts connections at this address.
func Ready(address string) {
	emit(map[string]any{"event": "ready", "address": address})
}

// emit prints an event with one write, so there is nothing to flush.
func emit(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err) // events consist of numbers, strings and lists
	}
	// A reader that has gone is no failure.
	_, _ = os.Stdout.Write(append(line, '\n'))
}
