// SPDX-License-Identifier: Apache-2.0

// Command porcupine checks histories of clients with Porcupine.
//
// A name in a container is a register with a value and metadata, or without
// an object. GET and HEAD of an object read the register; a page of a listing
// reads whether there is an object. Objects and listings are checked apart,
// since Swift updates them at different times.
//
// While a write is under way, or not yet on all servers, Swift may show it in
// one read and not in the next. So the reads that meet no such write must
// together be linearizable with all writes, and each other read by itself with
// the writes that it must or may show. Reads may show a write that was not
// acknowledged until a later write has replaced it, or never.
package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const patience = 20 * time.Second // for one name

func check(history []step) (porcupine.CheckResult, porcupine.LinearizationInfo) {
	operations := make([]porcupine.Operation, len(history))
	for i, s := range history {
		operations[i] = s.operation()
	}
	return porcupine.CheckOperationsVerbose(model, operations, patience)
}

// shortest returns a part of a history that is still wrong without any one
// step less. The writes of what its reads show stay.
func shortest(history []step) []step {
	for i := 0; i < len(history); {
		part := slices.Delete(slices.Clone(history), i, i+1)
		isNeeded := slices.ContainsFunc(part, func(s step) bool {
			return s.Write == "" && history[i].isShownBy(s) && !isWritten(s, part)
		})
		if result, _ := check(part); !isNeeded && result == porcupine.Illegal {
			history, i = part, 0
		} else {
			i++
		}
	}
	slices.SortFunc(history, func(a, b step) int { return cmp.Compare(a.Began, b.Began) })
	return history
}

func isWritten(read step, history []step) bool {
	return slices.ContainsFunc(history, func(s step) bool {
		return s.Write != "" && s.Began < read.Ended && s.isShownBy(read)
	})
}

// read returns the names of a history, of objects and of listings.
func read(path string) ([]*name, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	writes, reads := map[string][]step{}, [2]map[string][]step{{}, {}}
	decoder := json.NewDecoder(bufio.NewReader(unzipped))
	for decoder.More() {
		var each line
		if err := decoder.Decode(&each); err != nil {
			return nil, err
		}
		if each.Write != "" {
			writes[each.Name] = append(writes[each.Name], step{line: each})
		}
		kind := 0
		if each.Listing {
			kind = 1
		}
		for shown, state := range each.Shown {
			one := step{line: each, shows: state}
			one.Name, one.Shown = shown, nil
			reads[kind][shown] = append(reads[kind][shown], one)
		}
	}
	var names []*name
	for kind, known := range []func(line) float64{
		func(l line) float64 { return l.Stored },
		func(l line) float64 { return l.Listed },
	} {
		for shown, some := range reads[kind] {
			names = append(names, newName(writes[shown], some, known))
		}
	}
	return names, nil
}

// report checks a history, prints what it found, and tells if it is good.
func report(path string) (bool, error) {
	names, err := read(path)
	if err != nil {
		return false, err
	}
	var wrong [][]step
	operations, unknown := 0, 0
	for _, n := range names {
		operations += len(n.writes) + len(n.reads)
		for _, history := range n.histories() {
			switch result, _ := check(history); result {
			case porcupine.Illegal:
				wrong = append(wrong, history)
			case porcupine.Unknown:
				unknown++
			}
		}
	}
	fmt.Printf("%s: %d reads and writes of names, %d wrong, %d not decided\n",
		path, operations, len(wrong), unknown)
	if len(wrong) > 0 {
		least := shortest(slices.MinFunc(wrong, func(a, b []step) int { return cmp.Compare(len(a), len(b)) }))
		for _, s := range least {
			fmt.Printf("  %.3f %.3f %s %s: %s\n", s.Began, s.Ended, s.By, s.Name, s)
		}
		_, info := check(least)
		picture := strings.TrimSuffix(path, ".jsonl.gz") + ".html"
		fmt.Println("  drawn in", picture)
		return false, porcupine.VisualizePath(model, info, picture)
	}
	return unknown == 0, nil
}

func main() {
	code := 0
	for _, path := range os.Args[1:] {
		isGood, err := report(path)
		if err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		if !isGood {
			code = 1
		}
	}
	os.Exit(code)
}
