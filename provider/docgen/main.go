// Command docgen writes docs/providers.md from the catalogue. Run it with go generate in the directory provider.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return fmt.Errorf("usage: docgen <file> [<conformance matrix>]")
	}
	var results *conformance
	if len(args) == 2 {
		var err error
		if results, err = readConformance(args[1]); err != nil {
			return err
		}
	}
	before, err := os.ReadFile(args[0])
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(args[0], []byte(render(string(before), results)), 0o644)
}
