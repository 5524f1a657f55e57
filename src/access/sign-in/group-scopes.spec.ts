import { readGroupScopes, scopesOfGroups } from './group-scopes.js';

const GROUPS = readGroupScopes('{"admins": ["admin", "operations"], "clinic": ["people:read", "operations"]}');

test.each([
  [
    ['admins', 'others', 'clinic'],
    ['admin', 'operations', 'people:read'],
  ],
  ['clinic', ['people:read', 'operations']],
  [['others'], []],
  ['toString', []],
  [undefined, []],
  [{ admins: true }, []],
  [[['admins']], []],
])('%j has the scopes %j', (claim, scopes) => {
  expect([...scopesOfGroups(GROUPS, claim)]).toEqual(scopes);
});

test.each([
  ['', 'must be a JSON object'],
  ['["admin"]', 'must be a JSON object'],
  ['{}', 'must be a JSON object'],
  ['{"a": "admin"}', 'a needs a list of scopes'],
  ['{"a": []}', 'a needs a list of scopes'],
  ['{"a": ["root"], "b": ["admin", "people"]}', 'a has the unknown scope root; b has the unknown scope people.'],
])('refuses %s, and names each fault', (json, fault) => {
  expect(() => readGroupScopes(json)).toThrow(fault);
});
