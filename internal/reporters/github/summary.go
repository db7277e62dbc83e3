package github

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// maxSummary is what a step may write: GitHub discards a larger file completely
// (docs.github.com, workflow commands, step isolation and limits).
const maxSummary = 1 << 20

const truncatedSummary = "> **Truncated**: a job summary holds 1 MiB.\n\n"

// AppendSummary appends Markdown to the job summary, the file named by
// GITHUB_STEP_SUMMARY. Text that does not fit is truncated after a line, and
// begins with a notice, because the end could be inside an open block. A full
// file is not changed: ErrTooLong. It needs no permission.
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
		// The file may end inside a line of an earlier command.
		md = append([]byte("\n"), md...)
	}
	if md, err = fitSummary(md, maxSummary-info.Size()); err != nil {
		return err
	}
	_, err = file.Write(md)
	return err
}

// fitSummary returns md, or those of its lines that fit into room bytes after a
// notice.
func fitSummary(md []byte, room int64) ([]byte, error) {
	if int64(len(md)) <= room {
		return md, nil
	}
	room -= int64(len("\n" + truncatedSummary))
	if room < 0 {
		return nil, fmt.Errorf("less space than a line of the 1 MiB that a step may write: %w", ErrTooLong)
	}
	head := md[:room]
	head = head[:bytes.LastIndexByte(head, '\n')+1]
	return append([]byte("\n"+truncatedSummary), head...), nil
}
