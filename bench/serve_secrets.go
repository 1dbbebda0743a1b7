package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"floodproof/bench/node"
	"floodproof/reference"
)

// readSecrets takes the secrets from variables and files. No error repeats one.
func (c *serveConfig) readSecrets(env map[string]string) []error {
	r := &secretReader{env: env, files: map[string]string{}, unread: map[string]bool{}}
	for name, p := range c.providers {
		r.files[node.SecretVariable(name)] = p.secretFile
	}
	var err error
	if c.receivers, err = node.Providers(r.get); err != nil {
		r.faults = append(r.faults, err)
	}
	for name, p := range c.providers {
		config, ok := c.receivers[name]
		switch variable := node.SecretVariable(name); {
		case ok:
			config.MaxBody = p.maxBody
			c.receivers[name] = config
		case !r.unread[variable]:
			r.faults = append(r.faults, fmt.Errorf("provider %s has no secret: set %s or secret_file", name, variable))
		}
	}
	r.faults = append(r.faults, c.strayVariables(env)...)
	c.password = reference.Secret(r.either(env["FLOODPROOF_PASSWORD"], c.passwordFile, "the password"))
	c.downstream = r.either(c.downstream, c.downstreamFile, "the downstream")
	c.readAddress(r)
	c.alerts.read(r)
	return r.faults
}

// secretReader finds secrets in variables and files.
type secretReader struct {
	env map[string]string
	// files are those of the configuration, by the variable that they stand for; unread those variables whose file could not be read.
	files  map[string]string
	unread map[string]bool
	faults []error
}

// get is what a variable, or the file in its place, holds.
func (r *secretReader) get(variable string) string {
	if value := r.env[variable]; value != "" {
		return value
	}
	file := r.env[variable+"_FILE"]
	if file == "" {
		file = r.files[variable]
	}
	if file == "" {
		return ""
	}
	text := r.read(file)
	r.unread[variable] = text == ""
	return text
}

// either is a value, or what is in a file, but not both.
func (r *secretReader) either(value, file, what string) string {
	switch {
	case file == "":
		return value
	case value != "":
		r.faults = append(r.faults, fmt.Errorf("%s is given, and a file that holds it: keep one of them", what))
		return value
	}
	return r.read(file)
}

// read returns a file's text without the space around it. One that cannot be read, or holds nothing, is a fault.
func (r *secretReader) read(file string) string {
	raw, err := os.ReadFile(filepath.Clean(file))
	text := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		r.faults = append(r.faults, fmt.Errorf("read secret: %w", err))
	case text == "":
		r.faults = append(r.faults, fmt.Errorf("read secret: %s is empty", file))
	}
	return text
}

// strayVariables are secrets of providers that do not exist: most likely one is spelled wrong, and its events would be refused.
func (c *serveConfig) strayVariables(env map[string]string) []error {
	known := map[string]bool{}
	for _, name := range slices.Concat(reference.Providers(), c.providerNames()) {
		for _, end := range []string{"", "_FILE", "_PREVIOUS", "_PREVIOUS_FILE"} {
			known[node.SecretVariable(name)+end] = true
		}
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(name, "FLOODPROOF_SECRET_") && !known[name] {
			faults = append(faults, fmt.Errorf("variable %s is of no provider that there is; floodproof list providers shows them", name))
		}
	}
	return faults
}
