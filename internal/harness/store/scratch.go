package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scratch is an empty bare repository for one Load or Update, with the remotes
// and credentials of a checkout.
type scratch struct {
	remote, branch, path string
	dir                  string
	// top is the directory to which relative URLs of remotes refer.
	top string
	env []string
	// committer has the form NAME <EMAIL>.
	committer string
}

// local lists the variables with which git finds a repository (`git rev-parse
// --local-env-vars`); they are set if leakgate runs in a hook. trace lists the
// variables that make git print what it sends. asking lists the variables that
// would make git or ssh open a password dialog.
var (
	local = []string{
		"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE",
		"GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE",
		"GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR",
		"GIT_NAMESPACE", "GIT_QUARANTINE_PATH",
	}
	trace   = regexp.MustCompile(`^GIT_(TRACE\w*|CURL_VERBOSE)=`)
	asking  = []string{"SSH_ASKPASS"}
	configs = regexp.MustCompile(`^GIT_CONFIG\w*=`)
)

// newScratch creates the scratch repository of a store.
func newScratch(ctx context.Context, g *gitStore) (*scratch, error) {
	env := slices.DeleteFunc(slices.Clone(g.Env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(local, name) || slices.Contains(asking, name) || trace.MatchString(v)
	})
	env = append(env, "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1", "LC_ALL=C")
	s := &scratch{remote: g.remote, branch: g.branch, path: g.path, top: cmp.Or(g.Dir, "."), env: env}
	if err := s.checkVersion(ctx); err != nil {
		return nil, err
	}
	checkout, err := s.git(ctx, nil, "rev-parse", "--show-object-format", "--show-cdup")
	if err != nil {
		return nil, fmt.Errorf("find the checkout: %w; run leakgate in a checkout of the repository", err)
	}
	format, up, _ := strings.Cut(string(checkout), "\n")
	config, err := s.git(ctx, nil, "config", "--list", "-z")
	if err != nil {
		return nil, fmt.Errorf("read the configuration of git: %w", err)
	}
	settings := parseSettings(string(config))
	if _, ok := settings.last("remote." + s.remote + ".url"); !ok {
		return nil, fmt.Errorf("the checkout has no remote %s; add it with `git remote add`, "+
			"or write git:%s/%s/%s#%s if %s is part of the branch",
			s.remote, defaultRemote, s.remote, s.branch, s.path, s.remote)
	}
	s.top = filepath.Join(s.top, strings.TrimSpace(up))
	s.committer = committer(settings, env)
	if s.dir, err = os.MkdirTemp("", "leakgate-git-*"); err != nil {
		return nil, fmt.Errorf("create scratch repository: %w", err)
	}
	if err := initialize(s.dir, format); err != nil {
		s.remove()
		return nil, fmt.Errorf("create scratch repository: %w", err)
	}
	s.env = append(slices.DeleteFunc(env, configs.MatchString), settings.env(s.dir)...)
	if _, ok := settings.last("core.sshcommand"); !ok && variable(env, "GIT_SSH_COMMAND") == "" &&
		variable(env, "GIT_SSH") == "" {
		s.env = append(s.env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	return s, nil
}

// remove deletes the scratch repository. If that fails, the repository remains
// until the system cleans up temporary files.
func (s *scratch) remove() { _ = os.RemoveAll(s.dir) }

// initialize creates an empty bare repository (gitrepository-layout(5)). `git
// init` would copy the user's template, including hooks. Nothing in the
// repository has to survive a crash, so git need not sync to disk.
func initialize(dir, format string) error {
	config := "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tfsync = none\n"
	if format != "sha1" {
		config += "[extensions]\n\tobjectFormat = " + format + "\n"
	}
	var errs []error
	for _, sub := range []string{"objects", "refs"} {
		errs = append(errs, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config, "no-config": ""} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return errors.Join(errs...)
}

// settings is the configuration of git. Each entry is KEY<newline>VALUE, or
// only KEY for a setting that is true.
type settings []string

func parseSettings(list string) settings {
	return slices.DeleteFunc(strings.Split(list, "\x00"), func(s string) bool { return s == "" })
}

// last returns the last value of a setting, which is the effective one.
func (s settings) last(key string) (string, bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if k, value, _ := strings.Cut(s[i], "\n"); k == key {
			return value, true
		}
	}
	return "", false
}

// env passes the configuration of the checkout to the scratch repository. It
// includes the settings for reaching remotes, but not those for files, hooks,
// branches and objects of the checkout. It uses the environment, because the
// settings may contain tokens, which would be visible on a command line or in a
// file. The configuration files of the user and the system are replaced with an
// empty file, because their settings are already among those passed. That
// includes the parts that apply only to this checkout (includeIf), which
// actions/checkout uses for its token.
func (s settings) env(dir string) []string {
	empty := filepath.Join(dir, "no-config")
	out := []string{
		"GIT_DIR=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + empty, "GIT_CONFIG_SYSTEM=" + empty,
	}
	n := 0
	for _, entry := range s {
		key, value, valued := strings.Cut(entry, "\n")
		if !transport(key) {
			continue
		}
		if !valued {
			value = "true"
		}
		i := strconv.Itoa(n)
		out = append(out, "GIT_CONFIG_KEY_"+i+"="+key, "GIT_CONFIG_VALUE_"+i+"="+value)
		n++
	}
	return append(out, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}

// transport reports whether a configuration key may affect how a remote is
// reached. git and its helpers have many such keys, so most sections list the
// exceptions instead.
func transport(key string) bool {
	section, rest, _ := strings.Cut(key, ".")
	name := rest[strings.LastIndex(rest, ".")+1:]
	switch section {
	case "core":
		return slices.Contains([]string{"sshcommand", "askpass", "gitproxy"}, name)
	case "remote":
		return !slices.Contains(
			[]string{
				"fetch", "push", "mirror", "promisor", "partialclonefilter", "tagopt", "prune", "prunetags",
				"skipdefaultupdate", "skipfetchall", "followremotehead",
			}, name)
	case "push":
		return name == "pushoption" || name == "gpgsign"
	case "extensions", "index", "gc", "maintenance", "pack", "repack", "fetch", "pull", "branch", "alias", "submodule",
		"filter", "diff", "merge", "include", "includeif",
		"receive", "init", "feature", "fastimport", "fsck", "hook", "log", "color", "pager", "trailer", "commit", "tag",
		"rerere", "advice":
		return false
	}
	return true
}

// committer returns the committer in git's configuration. If there is none, as
// in a CI job, it returns leakgate itself as the committer.
func committer(s settings, env []string) string {
	pick := func(instead string, values ...string) string {
		for _, v := range values {
			// git also removes these characters from names (ident.c).
			if v = strings.Trim(strings.Map(func(r rune) rune {
				if r < ' ' || r == '<' || r == '>' {
					return -1
				}
				return r
			}, v), " .,:;\"\\'"); v != "" {
				return v
			}
		}
		return instead
	}
	of := func(key string) string { value, _ := s.last(key); return value }
	name := pick("leakgate", variable(env, "GIT_COMMITTER_NAME"), of("committer.name"), of("user.name"))
	mail := pick("leakgate@localhost", variable(env, "GIT_COMMITTER_EMAIL"), of("committer.email"), of("user.email"),
		variable(env, "EMAIL"))
	return name + " <" + mail + ">"
}

var version = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

// checkVersion rejects versions of git that do not support the variables that
// settings.env sets.
func (s *scratch) checkVersion(ctx context.Context) error {
	const major, minor = 2, 32
	out, err := s.line(ctx, nil, "version")
	if err != nil {
		return fmt.Errorf("find git: %w; install git", err)
	}
	m := version.FindStringSubmatch(out)
	if m == nil {
		return nil // a build with a custom version
	}
	a, aerr := strconv.Atoi(m[1])
	b, berr := strconv.Atoi(m[2])
	if errors.Join(aerr, berr) == nil && (a < major || a == major && b < minor) {
		return fmt.Errorf("git %d.%d is too old for a baseline on a branch; install git %d.%d or later", a, b, major,
			minor)
	}
	return nil
}

// line returns the output of git without its newline.
func (s *scratch) line(ctx context.Context, input []byte, args ...string) (string, error) {
	out, err := s.git(ctx, input, args...)
	return strings.TrimSpace(string(out)), err
}

// git runs git and names its command in errors.
func (s *scratch) git(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	out, err := program{
		argv: append([]string{"git"}, args...), dir: s.top, env: s.env, input: input, most: maxContent,
	}.run(ctx)
	var exit *exitError
	if errors.As(err, &exit) {
		exit.program = "git " + args[0]
	}
	return out, err
}
