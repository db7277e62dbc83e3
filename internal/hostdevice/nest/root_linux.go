package nest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// phones lists the directories of the root that exist only on a phone.
var phones = map[string]bool{"apex": true, "data": true, "system": true}

// makeRoot assembles the phone's root from this machine's directories. It is
// visible only in this mount namespace.
func (p Plan) makeRoot() error {
	// Mounts in this namespace must not propagate to the namespace from which
	// it was copied.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", p.Root, "tmpfs", syscall.MS_NOSUID, "mode=755,size=1m"); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	// The new root is in a directory that will be mounted inside it.
	if err := syscall.Mount("", p.Root, "", syscall.MS_UNBINDABLE, ""); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	if err := p.showMachine(); err != nil {
		return err
	}
	for _, b := range p.Binds {
		if err := p.bind(b); err != nil {
			return err
		}
	}
	if err := syscall.Mount("", p.Root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|syscall.MS_NOSUID,
		""); err != nil {
		return fmt.Errorf("make root read-only: %w", err)
	}
	return nil
}

func (p Plan) showMachine() error {
	entries, err := os.ReadDir("/")
	if err != nil {
		return fmt.Errorf("list root: %w", err)
	}
	for _, e := range entries {
		from, to := "/"+e.Name(), filepath.Join(p.Root, e.Name())
		switch {
		case phones[e.Name()]:
		case e.IsDir():
			err = p.bind(Bind{from, from})
		case e.Type()&os.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(from); err == nil {
				err = os.Symlink(target, to)
			}
		}
		if err != nil {
			return fmt.Errorf("show %s: %w", from, err)
		}
	}
	return nil
}

// bind mounts From at To. It creates missing directories of To; From must
// exist.
func (p Plan) bind(b Bind) error {
	to := filepath.Join(p.Root, b.To)
	first, _, _ := strings.Cut(strings.TrimPrefix(b.To, "/"), "/")
	if phones[first] || filepath.Dir(b.To) == "/" {
		if err := os.MkdirAll(to, 0o755); err != nil {
			return fmt.Errorf("bind %s: %w", b.To, err)
		}
	}
	if err := syscall.Mount(b.From, to, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", b.To, err)
	}
	return nil
}
