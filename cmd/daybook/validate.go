package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-data/daybook/internal/node"
)

func (c *cli) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check pipeline files without running them",
		Long: `Checks each file as strictly as run does and prints every problem with its line and
column. It opens no journal and no connection to another machine. Exit code 2 if any file
is not right. Of files whose journal is a folder it warns, with exit code 0, if a sink
reads a stream that no source of all of them fills: name them together.`,
		Example: "  daybook validate shop.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			return node.Validate(cmd.Context(), files, c.stdout, c.stderr)
		},
	}
}
