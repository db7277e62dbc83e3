package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxUploads is the maximum number of earlier contents that Load returns.
	maxUploads = 10
	// maxListed is the maximum number of artifacts in which Load looks for
	// contents.
	maxListed = 30
)

// Artifacts reads the artifacts that earlier workflow runs uploaded.
type Artifacts interface {
	// List returns up to n artifacts with the given name, newest first,
	// uploaded by runs for the given branch of this repository. It excludes
	// artifacts of forks and of other branches.
	List(ctx context.Context, name, branch string, n int) ([]Upload, error)
	// Download returns the file in an artifact. It returns an error if the file
	// exceeds limit bytes. The error fs.ErrNotExist means that the artifact is
	// gone or does not contain the file.
	Download(ctx context.Context, id int64, file string, limit int64) ([]byte, error)
}

// Upload is one artifact of a workflow run.
type Upload struct {
	ID int64
	// Expired artifacts are listed but cannot be downloaded.
	Expired bool
}

// UploadFile is the path, relative to Options.Dir, of the file that an update
// of artifact:NAME writes for actions/upload-artifact. Its last part is the
// name within the artifact.
const UploadFile = "leak-baseline/" + defaultName

// artifactStore keeps a baseline in artifacts of GitHub Actions. Each run
// uploads an updated version of the earlier artifacts. Concurrent runs upload
// separate versions, so the newest ones are read together.
type artifactStore struct {
	name string
	Options
}

func (a *artifactStore) load(ctx context.Context) ([][]byte, error) {
	list, err := a.Artifacts.List(ctx, a.name, a.Branch, maxListed)
	if err != nil {
		return nil, fmt.Errorf("list artifacts: %w", err)
	}
	var contents [][]byte
	var missing error
	for _, upload := range list[:min(len(list), maxListed)] {
		if upload.Expired || len(contents) == maxUploads {
			continue
		}
		content, err := a.Artifacts.Download(ctx, upload.ID, defaultName, maxContent)
		if err == nil {
			err = checkSize(int64(len(content)))
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = fmt.Errorf("artifact %d has no %s: %w; upload %s as a separate artifact", upload.ID, defaultName,
				err, UploadFile)
			a.Say(fmt.Sprintf("artifact %d skipped: %s", upload.ID,
				text.Head(text.Printable(redact(err.Error())), maxSaid)))
		case err != nil:
			return nil, fmt.Errorf("download artifact %d: %w", upload.ID, err)
		default:
			if err := a.Check(content); err != nil {
				return nil, fmt.Errorf("artifact %d: %w", upload.ID, err)
			}
			contents = append(contents, content)
		}
	}
	if len(contents) > 0 {
		return contents, nil
	}
	if missing != nil {
		return nil, missing // an artifact of another kind with the same name
	}
	return nil, ErrNone
}

// update writes the file to upload. If an earlier step of the job has already
// written the file, the update is based on its content, which is the newest and
// has not been uploaded yet.
func (a *artifactStore) update(ctx context.Context, apply func(old [][]byte) ([]byte, error)) error {
	uploaded, err := a.load(ctx)
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	pending := &fileStore{path: filepath.Join(a.Dir, filepath.FromSlash(UploadFile))}
	return pending.update(ctx, func(old [][]byte) ([]byte, error) { return apply(append(old, uploaded...)) })
}
