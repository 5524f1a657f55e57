import type { SeededRandom } from '../seeded-random.js';
import type { NewSession, SimulatedSession } from './session.js';

/** All sessions of the organisation. */
export class SessionStore {
  private readonly byId = new Map<string, SimulatedSession>();
  private readonly byProcessing = new Map<string, SimulatedSession>();

  constructor(private readonly random: SeededRandom) {}

  /** @param createdAt ISO 8601 */
  add(wanted: NewSession, createdAt: string, outcome: { aiNotes: boolean; willFail: boolean }): SimulatedSession {
    const [client] = wanted.clientUserIds;
    const session: SimulatedSession = {
      ...wanted,
      ...outcome,
      sessionId: this.random.uuid(),
      processingId: this.random.uuid(),
      createdAt,
      state: 'InProgress',
      nextStep: 'start',
      wantedTemplateIds: wanted.noteTemplateIds,
      generation: 0,
      documents: new Map(),
      speakerMapping: wanted.input.kind === 'text' ? {} : { A: wanted.providerUserId, ...(client && { B: client }) },
      completed: false,
      transcriptDeleted: false,
      editedByHand: false,
      lookUps: 0,
      processingLookUps: 0,
    };
    this.byId.set(session.sessionId, session);
    this.byProcessing.set(session.processingId, session);
    return session;
  }

  find(sessionId: string): SimulatedSession | undefined {
    return this.byId.get(sessionId);
  }

  findByProcessing(processingId: string): SimulatedSession | undefined {
    return this.byProcessing.get(processingId);
  }

  remove({ sessionId, processingId }: SimulatedSession): void {
    this.byId.delete(sessionId);
    this.byProcessing.delete(processingId);
  }

  list(): SimulatedSession[] {
    return [...this.byId.values()];
  }
}
