import { Body, Controller, HttpCode, Param, Patch, Put } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { RouteOptions } from '../../http/request/route-options.js';
import { SESSION_BODY_LIMIT } from '../create/create-session.dto.js';
import { SessionResponse } from '../read/session-view.js';
import { SessionUpdates } from './session-updates.js';
import { NoteTemplatesRequest, UPDATE_EXAMPLES, UpdateSessionRequest } from './update-session.dto.js';

/** Changes to sessions; `{id}` is ours or the platform's. */
@ApiTags('sessions')
@Controller('v1/sessions/:id')
@Scopes('sessions:write')
export class SessionUpdatesController {
  constructor(private readonly updates: SessionUpdates) {}

  /**
   * Changes what the notes are made from
   *
   * @remarks What is absent, null or blank stays as it is; at least one field must say something.
   */
  @Patch()
  @HttpCode(200)
  @RouteOptions({ bodyLimit: SESSION_BODY_LIMIT })
  @ApiBody({ type: UpdateSessionRequest, examples: UPDATE_EXAMPLES })
  @ApiOkResponse({ type: SessionResponse })
  async update(@Param('id') id: string, @Body() dto: UpdateSessionRequest): Promise<SessionResponse> {
    return this.updates.update(id, dto);
  }

  /**
   * Adds or reprocesses note templates; PATCH the session instead
   *
   * @deprecated
   */
  @Put('note-templates')
  @HttpCode(200)
  async updateNoteTemplates(
    @Param('id') id: string,
    @Body() { noteTemplateIds }: NoteTemplatesRequest,
  ): Promise<SessionResponse> {
    return this.updates.updateNoteTemplates(id, noteTemplateIds);
  }
}
