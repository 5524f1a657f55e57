import type { Session, Transcript } from '../../src/platform/contract/session-answer.js';
import type { SimulatedSession } from './session.js';

/** Invented lines of a provider (A) and a client (B), in spoken order. */
const LINES: readonly (readonly ['A' | 'B', string])[] = [
  ['A', 'Good to see you again. How has the week been since we last met?'],
  ['B', 'Mixed. I slept better on most nights, but Thursday at the warehouse was hard.'],
  ['A', 'What happened on Thursday?'],
  ['B', 'My supervisor moved the deadline and my chest went tight. I had to step outside for a while.'],
  ['A', 'You stepped outside. What did you notice in your body when you did that?'],
  ['B', 'My breathing slowed down after a few minutes. I tried counting, like we practised.'],
  ['A', 'So you used the breathing exercise on your own, in the moment. How was that for you?'],
  ['B', 'Honestly, better than I expected. I went back in and finished the shift.'],
  ['A', 'Let us look at the thought that came first, before the tightness.'],
  ['B', 'That I would be the one to let everyone down again.'],
  ['A', 'What supports that thought, and what contradicts it?'],
  ['B', 'Contradicts it? They asked me to train the new people in Riverton. They would not do that otherwise.'],
  ['A', 'Keep that sentence. For next week, write down one such moment each day.'],
  ['B', 'I can do that. I will bring the notebook.'],
];

const MS_PER_WORD = 380;
const PAUSE_MS = 700;

/** A transcript with word times; several recordings are concatenated, so their conversation is longer. */
export function transcriptOf(session: SimulatedSession): Transcript | undefined {
  if (session.input.kind !== 'recording' || session.transcriptDeleted) return undefined;
  const utterances: NonNullable<Transcript['utterances']> = [];
  let start = 0;
  for (const _recording of session.input.urls) {
    for (const [speaker, text] of linesFor(session)) {
      const words = text.split(' ').map((word, index) => ({
        text: word,
        start: start + index * MS_PER_WORD,
        end: start + (index + 1) * MS_PER_WORD - 40,
      }));
      const end = words.at(-1)?.end ?? start;
      utterances.push({ text, start, end, speaker, words });
      start = end + PAUSE_MS;
    }
  }
  return { utterances, speakerMapping: session.speakerMapping };
}

/** Dictated notes have one speaker. */
function linesFor(session: SimulatedSession): readonly (readonly ['A' | 'B', string])[] {
  const dictated = session.input.kind === 'recording' && session.input.content === 'DictatedNotes';
  return dictated ? LINES.filter(([speaker]) => speaker === 'A') : LINES;
}

/** Total milliseconds of all recordings; undefined without audio. */
export function recordingDurationOf(session: SimulatedSession): number | undefined {
  const utterances = transcriptOf({ ...session, transcriptDeleted: false })?.utterances ?? [];
  return utterances.at(-1)?.end;
}

export function topicsOf(session: SimulatedSession): NonNullable<Session['topics']> {
  const durationMs = recordingDurationOf(session) ?? 0;
  const part = (from: number, to: number) => ({
    start: Math.round(durationMs * from),
    end: Math.round(durationMs * to),
  });
  return [
    { headline: 'Anxiety at work', gist: 'A moved deadline brought on tightness in the chest.', ...part(0, 0.35) },
    { headline: 'Breathing exercise', gist: 'The client used a practised exercise without help.', ...part(0.35, 0.6) },
    { headline: 'Thoughts of failing others', gist: 'Evidence for and against was weighed.', ...part(0.6, 1) },
  ];
}

export function namedEntitiesOf(): NonNullable<Session['namedEntities']> {
  return [
    { entityType: 'medical_condition', name: 'anxiety', summary: 'Situational, at work.' },
    { entityType: 'organisation', name: 'the warehouse' },
    { entityType: 'location', name: 'Riverton', summary: 'Where the client is to train new people.' },
  ];
}
