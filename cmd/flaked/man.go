package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/internal/clidoc"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name:      "man",
		Usage:     "print man pages",
		ArgsUsage: "[COMMAND]",
		Description: `Prints the man page of flaked or of one of its commands. With --dir it writes all
pages: flaked.1, flaked-serve.1 and so on. They have the text of --help.

Examples:
  flaked man serve | man -l -
  flaked man --dir /usr/local/share/man/man1`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "write all pages into this `DIRECTORY`", DefaultText: "print one page", EnvVars: env("dir")},
		},
		Action: man,
	}
}

func man(c *cli.Context) error {
	dir := c.String("dir")
	if c.NArg() > 1 || c.NArg() == 1 && dir != "" {
		return usageError("expected one COMMAND, or --dir without one for all pages")
	}
	if dir != "" {
		return writeFiles(dir, manPages(c.App))
	}
	page, ok := clidoc.Man(describe(c.App), c.Args().First(), manSections)
	if !ok {
		return unknownCommand(c, c.App.Commands)
	}
	_, err := fmt.Fprint(c.App.Writer, page)
	return err
}

// manSections are part of every man page.
var manSections = []clidoc.Section{
	{Title: "Configuration", Text: configurationText},
	{Title: "Exit status", Text: exitCodesText()},
}

// manPages returns the man pages of all commands by their file names.
func manPages(app *cli.App) map[string]string {
	program := describe(app)
	pages := map[string]string{}
	for _, c := range append([]clidoc.Command{{}}, program.Commands...) {
		page, _ := clidoc.Man(program, c.Name, manSections)
		pages[clidoc.ManName(program, c.Name)+".1"] = page
	}
	return pages
}

// writeFiles writes files below dir, and makes missing directories.
func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
