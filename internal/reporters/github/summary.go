package github

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// maxSummary is the maximum number of bytes that a step may write: GitHub
// discards a larger file completely (docs.github.com, workflow commands, step
// isolation and limits).
const maxSummary = 1 << 20

const truncatedSummary = "> **Truncated**: a job summary holds 1 MiB.\n\n"

// AppendSummary appends Markdown to the job summary, the file named by
// GITHUB_STEP_SUMMARY. Markdown that does not fit is truncated at the end of a
// line. Truncated Markdown begins with a notice, because a notice at the end
// could be inside an open block. If the file is full, it is not changed and the
// error is ErrTooLong. No permission is needed.
func AppendSummary(path string, md []byte) error {
	if path == "" {
		return errors.New("append to job summary: GITHUB_STEP_SUMMARY is not set")
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("append to job summary: %w", err)
	}
	err = appendSummary(file, md)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("append to job summary: %w", err)
	}
	return nil
}

func appendSummary(file *os.File, md []byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		// The file may end without a line break if an earlier command did not
		// write one.
		md = append([]byte("\n"), md...)
	}
	if md, err = fitSummary(md, maxSummary-info.Size()); err != nil {
		return err
	}
	_, err = file.Write(md)
	return err
}

// fitSummary returns md or, if md exceeds room bytes, a notice and the first
// lines of md.
func fitSummary(md []byte, room int64) ([]byte, error) {
	if int64(len(md)) <= room {
		return md, nil
	}
	room -= int64(len("\n" + truncatedSummary))
	if room < 0 {
		return nil, fmt.Errorf("no space for a line in the 1 MiB that a step may write: %w", ErrTooLong)
	}
	head := md[:room]
	head = head[:bytes.LastIndexByte(head, '\n')+1]
	return append([]byte("\n"+truncatedSummary), head...), nil
}
