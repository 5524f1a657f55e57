import { Controller, Get, Header, Headers, Param, Res } from '@nestjs/common';
import { ApiOkResponse, ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { AuditedRead } from '../../access/audit/audit.interceptor.js';
import { Scopes } from '../../access/identity/scopes.js';
import { Clock } from '../../config/clock.js';
import { Problem } from '../../http/problem/problem.js';
import { chooseFormat, NOTE_FORMATS } from './note-formats.js';
import { type FhirElement, notesAsFhir } from './notes-fhir.js';
import { notesAsMarkdown } from './notes-markdown.js';
import { NotesResponse, RevisionsResponse } from './notes-view.js';
import { SessionReader } from './session-reader.js';

/** The notes of a session, in the form that Accept asks for. */
@ApiTags('sessions')
@Controller('v1/sessions/:id/notes')
export class SessionNotesController {
  constructor(
    private readonly reader: SessionReader,
    private readonly clock: Clock,
  ) {}

  /** The notes of a session: JSON, Markdown or FHIR */
  @Get()
  @Scopes('notes:read')
  @AuditedRead()
  @Header('Vary', 'Accept')
  @ApiProduces(...NOTE_FORMATS)
  @ApiOkResponse({ type: NotesResponse })
  async notes(
    @Param('id') id: string,
    @Headers('accept') accept: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<NotesResponse | FhirElement | string> {
    const format = chooseFormat(accept);
    if (!format) throw new Problem(406, 'not-acceptable', `Notes are given out as ${NOTE_FORMATS.join(', ')}.`);
    const { session, notes } = await this.reader.notes(id);
    reply.type(`${format}; charset=utf-8`);
    if (format === 'text/markdown') return notesAsMarkdown(notes);
    return format === 'application/json' ? notes : notesAsFhir(session, notes, this.clock.now());
  }

  /** Every version of one document that was fetched, the newest first */
  @Get(':documentId/revisions')
  @Scopes('notes:read')
  @AuditedRead()
  async revisions(@Param('id') id: string, @Param('documentId') documentId: string): Promise<RevisionsResponse> {
    return this.reader.revisions(id, documentId);
  }
}
