import { OpenIdProvider } from '../../harness/openid-provider.js';
import type { World } from '../../harness/world/world.js';
import { useWorld } from '../world/use-world.js';

/** The scopes of the provider's groups. */
const GROUPS = {
  admins: [
    'admin',
    'operations',
    'people:read',
    'people:write',
    'sessions:read',
    'notes:read',
    'imports',
    'subscriptions',
  ],
  clinic: ['people:read'],
};

/** A world whose people sign in at an OpenID provider. Ada is an administrator, Cleo sees people, Zoe has no group. */
export function useOpenId(): { world: World; provider: OpenIdProvider } {
  const settings: Record<string, string> = {};
  let provider: OpenIdProvider;
  beforeAll(async () => {
    provider = await OpenIdProvider.start(() => world.now());
    Object.assign(settings, provider.settings(GROUPS), { TRUSTED_PROXIES: '127.0.0.1' });
  });
  const world = useWorld({ settings });
  beforeEach(() => {
    provider.people.clear();
    provider.people.set('ada', { name: 'Ada Osei', groups: ['admins', 'staff'] });
    provider.people.set('cleo', { name: 'Cleo Brandt', groups: 'clinic' });
    provider.people.set('zoe', { name: 'Zoe Lindqvist', groups: ['staff'] });
  });
  afterAll(() => provider.close());
  const lazy = new Proxy({} as OpenIdProvider, {
    get: (_, name) => {
      const value: unknown = Reflect.get(provider, name, provider);
      return typeof value === 'function' ? value.bind(provider) : value;
    },
  });
  return { world, provider: lazy };
}

/** The HTTP client of a browser: it keeps cookies, and follows redirects only on request. */
export class HttpBrowser {
  private static browsers = 0;
  private readonly cookies = new Map<string, string>();
  /** Each browser has its own, because sessions that are not valid are limited by address. */
  private readonly address = `10.1.${HttpBrowser.browsers >> 8}.${HttpBrowser.browsers++ & 255}`;

  constructor(private readonly url: string) {}

  /** Requests a path of the service, or any URL. */
  async go(place: string, { headers, ...init }: RequestInit & { headers?: Record<string, string> } = {}) {
    const { origin } = new URL(place, this.url);
    const own = [...this.cookies].filter(([name]) => name.startsWith(`${origin} `));
    const cookie = own.map(([name, value]) => `${name.slice(origin.length + 1)}=${value}`).join('; ');
    const answer = await fetch(new URL(place, this.url), {
      ...init,
      redirect: 'manual',
      headers: { 'x-forwarded-for': this.address, ...headers, cookie },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) this.cookies.delete(`${origin} ${name}`);
      else this.cookies.set(`${origin} ${name}`, value);
    }
    return answer;
  }

  /** The value of a cookie of the service. */
  cookie(name: string): string | undefined {
    return this.cookies.get(`${this.url} ${name}`);
  }

  setCookie(name: string, value: string): void {
    this.cookies.set(`${this.url} ${name}`, value);
  }

  /** Starts a sign-in. @param change to the request to the provider @returns the URL of the page that asks who signs in */
  async toProvider(query = '', change: (asked: URL) => void = () => undefined): Promise<string> {
    const start = await this.go(`/v1/sign-in${query}`);
    const asked = new URL(start.headers.get('location') ?? '');
    change(asked);
    const answer = await this.go(asked.href);
    return new URL(answer.headers.get('location') ?? '', asked).href;
  }

  /** Chooses who signs in. @returns the URL of the service to which the provider redirects */
  async choose(login: string, page: string): Promise<string> {
    const body = new URLSearchParams(login === 'refuse' ? { refuse: '1' } : { login });
    let answer = await this.go(page, { method: 'POST', body });
    for (;;) {
      const place = new URL(answer.headers.get('location') ?? '', page).href;
      if (place.startsWith(this.url)) return place;
      answer = await this.go(place);
    }
  }

  /** Signs in at the provider. @returns the service's answer to the callback */
  async signIn(login: string, query = ''): Promise<Response> {
    return this.go(await this.choose(login, await this.toProvider(query)));
  }

  /** Requests the service's API as its pages do. @returns the status, and the problem or the body */
  async ask<Body = Record<string, unknown>>(
    method: string,
    path: string,
    options: { body?: unknown; headers?: Record<string, string> } = {},
  ) {
    const session = await this.go('/v1/browser-session');
    const { csrfToken = '' } = (await session.json()) as { csrfToken?: string };
    const answer = await this.go(path, {
      method,
      headers: {
        'x-csrf-token': csrfToken,
        ...(options.body !== undefined && { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    });
    const text = await answer.text();
    const body = (text.startsWith('{') ? JSON.parse(text) : {}) as Body & { type?: string };
    return { status: answer.status, body, problem: body.type?.replace('urn:notebridge:problem:', '') };
  }
}
