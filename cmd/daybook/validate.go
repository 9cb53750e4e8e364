package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check pipeline files without running them",
		Long: `Checks each file as strictly as run does and prints every problem with its line and
column. It opens no connection. Exit code 2 if any file is not right.`,
		Example: "  daybook validate shop.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			var errs []error
			for _, f := range files {
				if _, err := node.Load(f); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(c.stdout, "%s: ok\n", f)
			}
			return errors.Join(errs...)
		},
	}
}
