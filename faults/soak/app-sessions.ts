import type { SimulatedSession } from '../../simulator/sessions/session.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { beginRegeneration } from '../../simulator/sessions/session-run.js';
import type { World } from '../world.js';
import { REGENERATED_SHARE } from './practice.js';

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const TEXT = 'They discussed the week, of sleep and of what helps. '.repeat(10);

/** The last sessions. Some get their notes regenerated. */
const RECENT = 50;

/** Sessions that begin in the platform's own application. */
export class AppSessions {
  private readonly recent: SimulatedSession[] = [];
  private begun = 0;

  constructor(private readonly world: World) {}

  begin(): void {
    const { simulator, random } = this.world;
    const { state } = simulator;
    const users = state.users.list();
    const one = (role: string) => {
      const fitting = users.filter((user) => user.role === role);
      return fitting[random.below(fitting.length)]?.userId;
    };
    const client = one('Client');
    this.begun += 1;
    const session = createSession(state, {
      providerUserId: one('HealthcareProvider') ?? 'not-mirrored-yet',
      clientUserIds: client ? [client] : [],
      noteTemplateIds: [TEMPLATE],
      input: { kind: 'text', text: TEXT },
      date: new Date(state.nowMs()).toISOString(),
      partnerAppointmentId: `app-${this.begun}`,
    });
    this.recent.push(session);
    if (this.recent.length > RECENT) this.recent.shift();
    if (random.chance(REGENERATED_SHARE)) this.regenerate();
  }

  private regenerate(): void {
    const { simulator } = this.world;
    const session = this.recent.find(({ state, nextStep }) => state === 'Done' && !nextStep);
    if (session) beginRegeneration(simulator.state, session, [TEMPLATE]);
  }

  /** Checks that each session of the platform is known once and has an event, regardless of who created it. */
  async check(told: ReadonlySet<string>): Promise<void> {
    const { oracle, simulator } = this.world;
    const rows = await this.world.rows<{ id: string; platformId: string }>(
      'SELECT id, session_id AS "platformId" FROM sessions WHERE session_id IS NOT NULL',
    );
    const known = new Map(rows.map(({ id, platformId }) => [platformId, id]));
    oracle.same('no session is kept twice', known.size, rows.length);
    const sessions = simulator.state.sessions.list();
    oracle.none(
      'every session of the platform is known, and the feed told of it',
      sessions
        .filter(({ sessionId }) => !told.has(`sessions/${known.get(sessionId)}`))
        .map(({ sessionId }) => sessionId),
    );
    oracle.same('nothing else is known as a session', rows.length, sessions.length);
  }
}
