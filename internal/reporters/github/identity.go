package github

import (
	"context"
	"errors"
	"net/http"
	"strings"

	gogithub "github.com/google/go-github/v60/github"
)

// actionsLogin is the author of comments written with a GITHUB_TOKEN.
const actionsLogin = "github-actions[bot]"

// author returns the login of the author of comments that this token writes.
// GraphQL's viewer returns the login for every kind of token; GET /user is
// forbidden for a GITHUB_TOKEN and for tokens of a GitHub App (403).
func (s *Session) author(ctx context.Context) (string, error) {
	s.mu.Lock()
	login := s.login
	s.mu.Unlock()
	if login != "" {
		return login, nil
	}
	login, err := s.viewer(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrToken) {
		login, err = s.user(ctx)
	}
	if err != nil {
		return "", err
	}
	s.learn(login)
	return login, nil
}

// learn stores the login of the author. The response to creating a comment is
// the most reliable source.
func (s *Session) learn(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login = login
}

func (s *Session) viewer(ctx context.Context) (string, error) {
	var data struct{ Viewer struct{ Login string } }
	r := request{what: "read the owner of the token", need: "metadata: read", mode: repeatable}
	err := s.graphQL(ctx, r, "query{viewer{login}}", nil, func() any { return &data },
		func() bool { return data.Viewer.Login != "" })
	return data.Viewer.Login, err
}

func (s *Session) user(ctx context.Context) (string, error) {
	var login string
	err := s.do(ctx, request{
		what: "read the user of the token", need: "metadata: read", mode: read,
		send: func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
			user, resp, err := c.Users.Get(ctx, "")
			if err == nil && user.GetLogin() == "" {
				err = errIncomplete
			}
			login = user.GetLogin()
			return resp, err
		},
	})
	if errors.Is(err, ErrReadOnly) || errors.Is(err, ErrNotFound) {
		return actionsLogin, nil
	}
	return login, err
}

// wrote reports whether u has the given login. A login in brackets always
// belongs to a GitHub App.
func wrote(u *gogithub.User, login string) bool {
	return strings.EqualFold(u.GetLogin(), login) && (!strings.HasSuffix(login, "[bot]") || u.GetType() != "User")
}

// graphQL sends a query or an idempotent mutation. data returns the value into
// which the response is decoded; whole reports whether the response contains
// what was requested.
func (s *Session) graphQL(ctx context.Context, r request, query string, variables map[string]any, data func() any,
	whole func() bool) error {
	r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
		body := map[string]any{"query": query, "variables": variables}
		req, err := c.NewRequest(http.MethodPost, s.graphQLURL, body)
		if err != nil {
			return nil, err
		}
		answer := struct {
			Data   any
			Errors []struct{ Type, Message string }
		}{Data: data()}
		resp, err := c.Do(ctx, req, &answer)
		if err != nil || len(answer.Errors) == 0 {
			if err == nil && !whole() {
				err = errIncomplete
			}
			return resp, err
		}
		// GraphQL reports errors with status 200
		// (docs.github.com/graphql/overview/rate-limits-and-query-limits).
		resp.StatusCode = graphQLStatus(answer.Errors[0].Type)
		return resp, &gogithub.ErrorResponse{Response: resp.Response, Message: answer.Errors[0].Message}
	}
	return s.do(ctx, r)
}

func graphQLStatus(kind string) int {
	switch kind {
	case "RATE_LIMITED":
		return http.StatusTooManyRequests
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return http.StatusForbidden
	case "NOT_FOUND":
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}
