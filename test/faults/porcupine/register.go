// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// A line is a write, or a read with what it has shown by name: value and
// metadata, or nil for no object. Times are in seconds.
type line struct {
	Write, Name, Value, Meta     string
	Read, By                     string
	Began, Ended, Listed, Stored float64
	Sure, Listing                bool
	Shown                        map[string]*[2]*string
}

// A step is the input of an operation on a register.
type step struct {
	line
	isMaybe bool        // it may never take effect
	shows   *[2]*string // of a read
}

type register struct {
	exists      bool
	value, meta string
}

var nondeterministic = porcupine.NondeterministicModel{
	Init: func() []any { return []any{register{}} },
	Step: func(state, input, _ any) []any {
		before, in := state.(register), input.(step)
		if in.Write == "" {
			if !in.isExplainedBy(before) {
				return nil
			}
			return []any{before}
		}
		after := register{true, in.Value, in.Meta}
		if in.Write == "DELETE" || in.Write == "POST" && !before.exists {
			after = register{}
		} else if in.Write == "POST" {
			after.value = before.value
		}
		if in.isMaybe && after != before {
			return []any{before, after}
		}
		return []any{after}
	},
	DescribeOperation: func(input, _ any) string { return input.(step).String() },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}
var model = nondeterministic.ToModel()

func (s step) isExplainedBy(state register) bool {
	if s.shows == nil || !state.exists {
		return s.shows == nil && !state.exists
	}
	value, meta := s.shows[0], s.shows[1]
	return (value == nil || *value == state.value) && (meta == nil || *meta == state.meta)
}

// isShownBy tells if a read may depend on whether a write took effect.
func (s step) isShownBy(read step) bool {
	if read.shows == nil || s.Write == "DELETE" {
		return read.shows == nil && s.Write == "DELETE"
	}
	value, meta := read.shows[0], read.shows[1]
	return s.Write == "PUT" && (value == nil || *value == s.Value) ||
		s.Write == "POST" && meta != nil && *meta == s.Meta
}

func (s step) String() string {
	text := fmt.Sprintf("%s %s", s.Write, s.Value)
	if s.Write == "" {
		text = s.Read + " shows no object"
		if s.shows != nil {
			text = s.Read + " shows an object"
			for _, each := range s.shows {
				if each != nil {
					text += " " + *each
				}
			}
		}
	} else if s.Meta != "" {
		text += " meta " + s.Meta
	}
	if s.isMaybe {
		text += " (perhaps)"
	}
	return text
}

// replaces tells if a write surely replaces another one.
func (s step) replaces(other step) bool {
	return s.Sure && s.Began > other.Ended && (s.Write != "POST" || other.Write == "POST")
}

func (s step) operation() porcupine.Operation {
	micro := func(at float64) int64 { return int64(math.Round(at * 1e6)) }
	return porcupine.Operation{Input: s, Call: micro(s.Began), Return: micro(s.Ended)}
}

// A name has the writes and reads of one name, of objects or of listings.
type name struct {
	writes, reads []step
	until         []float64 // when each write is shown by all reads, or replaced
}

func newName(writes, reads []step, known func(line) float64) *name {
	n := &name{reads: reads}
	for _, w := range writes {
		until := known(w.line)
		if !w.Sure {
			w.isMaybe, until = true, math.Inf(1)
		}
		for _, other := range writes {
			if other.replaces(w) {
				until = min(until, known(other.line))
			}
		}
		n.writes, n.until = append(n.writes, w), append(n.until, until)
	}
	return n
}

// histories returns the histories that have to be linearizable.
func (n *name) histories() [][]step {
	quiet := slices.Clone(n.writes)
	var all [][]step
	for _, read := range n.reads {
		isQuiet := true
		history := []step{read}
		for i, w := range n.writes {
			isPending := n.until[i] >= read.Began
			isQuiet = isQuiet && !(isPending && w.Began < read.Ended)
			w.isMaybe = w.isMaybe || isPending
			if w.Began < read.Ended && (!w.isMaybe || w.isShownBy(read)) {
				history = append(history, w)
			}
		}
		if isQuiet {
			quiet = append(quiet, read)
		} else {
			all = append(all, history)
		}
	}
	return append(all, quiet)
}
