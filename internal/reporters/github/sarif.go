package github

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/leakgate/leakgate/internal/text"
)

// maxSARIF is GitHub's size limit after compression with gzip (docs.github.com,
// SARIF support for code scanning).
const maxSARIF = 10 << 20

// UploadSARIF uploads a SARIF file for code scanning and returns the upload's
// ID, which may be empty. ref is a full ref, refs/heads/BRANCH or
// refs/pull/N/head, and sha is its commit. GitHub processes the file later, so
// errors in it are not reported here. The same file may be uploaded again. The
// token needs the permission `security-events: write`, and code scanning must
// be enabled.
func (s *Session) UploadSARIF(ctx context.Context, ref, sha string, sarif []byte) (string, error) {
	if !strings.HasPrefix(ref, "refs/") || !shaRE.MatchString(sha) {
		return "", fmt.Errorf("upload SARIF: invalid ref %s or commit %s", text.Quote(ref, 100), text.Quote(sha, 70))
	}
	packed, err := pack(sarif, maxSARIF)
	if err != nil {
		return "", fmt.Errorf("upload SARIF: %w", err)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var id string
	err = s.do(ctx, request{
		what: fmt.Sprintf("upload SARIF to %s/%s", s.owner, s.repo), need: "security-events: write", mode: repeatable,
		send: func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
			got, resp, err := c.CodeScanning.UploadSarif(ctx, s.owner, s.repo, &gogithub.SarifAnalysis{
				CommitSHA: &sha, Ref: &ref, Sarif: &packed, ToolName: gogithub.String("leakgate"),
			})
			id = got.GetID()
			// GitHub responds with status 202 and a body that contains only the
			// ID.
			if resp != nil && resp.Response != nil && resp.StatusCode == http.StatusAccepted {
				return resp, nil
			}
			if err == nil {
				err = errIncomplete
			}
			return resp, err
		},
	})
	return id, err
}

// pack returns data in the form that the API accepts: compressed with gzip,
// then encoded as Base64. The compressed data must not exceed limit bytes.
func pack(data []byte, limit int) (string, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if b.Len() > limit {
		return "", fmt.Errorf("%s after gzip, GitHub accepts %s: report fewer results: %w",
			text.Size(int64(b.Len())), text.Size(int64(limit)), ErrTooLong)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
