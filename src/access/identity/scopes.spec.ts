import { Reflector } from '@nestjs/core';
import { neededScopes, Public, Scopes } from './scopes.js';

class Route {
  @Public()
  open() {}

  @Scopes('imports')
  narrow() {}

  undeclared() {}
}

it('a route needs the scopes that it declares, or admin when it declares none', () => {
  const needed = (name: keyof Route) => neededScopes(new Reflector(), Route.prototype[name], Route);
  expect([needed('open'), needed('narrow'), needed('undeclared')]).toEqual(['public', ['imports'], ['admin']]);
});
