import { anyNumber, anyText, fields, filledText, listOf, mapOf, oneOf } from './answer-shape.js';
import { SESSION_STATES } from './wire-types.js';

const span = { start: anyNumber, end: anyNumber };
const utterance = fields({
  ...span,
  text: anyText,
  speaker: anyText,
  words: listOf(fields({ ...span, text: anyText })),
});
const note = fields(
  { category: anyText, text: anyText },
  { categoryName: anyText, formatting: fields({}, { nestingLevel: anyNumber }) },
);
const document = fields({ sessionDocumentId: filledText, noteTemplateId: filledText, notes: listOf(note) });

const measure = (...names: string[]) => mapOf(fields({}, Object.fromEntries(names.map((name) => [name, anyNumber]))));

/** A Session as the spec lists its fields (Resources, Session); fields that the spec does not name are not looked at. */
export const sessionShape = fields(
  {
    sessionId: filledText,
    noteTemplateIds: listOf(anyText),
    providerUserId: filledText,
    clientUserIds: listOf(anyText),
    state: oneOf(SESSION_STATES),
  },
  {
    partnerAppointmentId: anyText,
    date: anyText,
    sessionCreatedAt: anyText,
    error: fields({ code: anyText, message: anyText }),
    sessionDurationMs: anyNumber,
    recordingDurationMs: anyNumber,
    recordingUrl: anyText,
    transcript: fields({}, { utterances: listOf(utterance), speakerMapping: mapOf(anyText) }),
    topics: listOf(fields({ ...span, headline: anyText, gist: anyText })),
    namedEntities: listOf(fields({ entityType: anyText, name: anyText }, { summary: anyText })),
    notes: listOf(document),
    analyticsSummary: fields(
      {},
      {
        talkingRatio: measure('ratio', 'ratioLongTerm', 'duration', 'durationLongTerm'),
        speechCadence: measure('cadence', 'cadenceLongTerm'),
        responseTime: measure('time', 'timeLongTerm'),
        sentiment: measure('positive', 'positiveLongTerm', 'negative', 'negativeLongTerm'),
        timePerspective: measure('future', 'futureLongTerm', 'past', 'pastLongTerm'),
      },
    ),
  },
);
