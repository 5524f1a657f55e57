import type { Session } from '../../src/platform/contract/session-answer.js';
import { transcriptOf } from './conversation.js';
import type { SimulatedSession } from './session.js';

type AnalyticsSummary = NonNullable<Session['analyticsSummary']>;

/** Measures of each person mapped to a speaker, from the transcript; none without a transcript. */
export function analyticsOf(session: SimulatedSession): AnalyticsSummary | undefined {
  const utterances = transcriptOf(session)?.utterances;
  if (!utterances) return undefined;
  const total = utterances.reduce((sum, { start, end }) => sum + end - start, 0);
  const summary = {
    talkingRatio: {} as NonNullable<AnalyticsSummary['talkingRatio']>,
    speechCadence: {} as NonNullable<AnalyticsSummary['speechCadence']>,
    responseTime: {} as NonNullable<AnalyticsSummary['responseTime']>,
    sentiment: {} as NonNullable<AnalyticsSummary['sentiment']>,
    timePerspective: {} as NonNullable<AnalyticsSummary['timePerspective']>,
  };
  for (const userId of new Set(Object.values(session.speakerMapping))) {
    const own = utterances.filter(({ speaker }) => session.speakerMapping[speaker] === userId);
    const talkingMs = own.reduce((sum, { start, end }) => sum + end - start, 0);
    const words = own.reduce((sum, utterance) => sum + utterance.words.length, 0);
    const ratio = rounded(talkingMs / total);
    const cadence = talkingMs === 0 ? 0 : rounded(words / (talkingMs / 60_000));
    summary.talkingRatio[userId] = { ratio, ratioLongTerm: 0.5, duration: talkingMs, durationLongTerm: talkingMs };
    summary.speechCadence[userId] = { cadence, cadenceLongTerm: cadence };
    summary.responseTime[userId] = { time: 0.7, timeLongTerm: 0.8 };
    summary.sentiment[userId] = { positive: 0.42, positiveLongTerm: 0.37, negative: 0.21, negativeLongTerm: 0.26 };
    summary.timePerspective[userId] = { future: 0.18, futureLongTerm: 0.15, past: 0.44, pastLongTerm: 0.48 };
  }
  return summary;
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
