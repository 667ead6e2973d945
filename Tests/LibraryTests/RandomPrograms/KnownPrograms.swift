/// Programs that broke a rule once.
enum KnownPrograms {
  static let all: [(name: String, text: String)] = [
    (
      "two people save the same, and one of them goes on",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      bob.2 open 1 team/doc rw
      alice.0 writeKnown 0
      bob.2 wait 16
      bob.2 rewrite 1
      alice.0 truncate 0
      """
    ),
    (
      "a file that somebody writes again as it is takes a document's place before they close it",
      """
      alice.1 save doc
      alice.1 wait 16
      alice.0 save u
      alice.3 open 0 u rw
      alice.3 rewrite 0
      alice.3 rename u doc
      alice.1 save doc
      alice.3 close 0
      """
    ),
    (
      "a save by rename while its program has the document open, too",
      """
      alice.0 open 0 doc creat
      alice.0 write 0
      alice.0 fsync 0
      alice.0 close 0
      alice.0 open 0 doc rw
      alice.0 write 0
      alice.0 save t
      alice.0 rename t doc
      alice.0 close 0
      """
    ),
    (
      "a second save by rename while its program writes",
      """
      alice.0 save .doc.tmp
      alice.0 rename .doc.tmp doc
      alice.0 open 0 doc rw
      alice.0 write 0
      alice.0 save .doc.tmp
      alice.0 rename .doc.tmp doc
      alice.0 close 0
      """
    ),
    (
      "an unlink of what was saved by rename, while its program writes",
      """
      alice.0 save .doc.tmp
      alice.0 rename .doc.tmp doc
      alice.0 open 0 doc rw
      alice.0 append 0
      alice.0 unlink doc
      alice.0 close 0
      """
    ),
    (
      "a document that was saved by rename is set aside",
      """
      alice.0 save .doc.tmp
      alice.0 rename .doc.tmp doc
      alice.0 rename doc doc.tmp
      alice.0 save doc
      alice.0 unlink doc.tmp
      """
    ),
    (
      "a document whose name looks like a temporary file's goes after some seconds",
      """
      alice.0 save template
      alice.0 wait 4
      alice.0 save template
      alice.0 unlink template
      """
    ),
    (
      "a document whose name looks like a temporary file's is saved by rename after some seconds",
      """
      alice.0 save .config
      alice.0 wait 4
      alice.0 save .config
      alice.0 wait 4
      alice.0 save t
      alice.0 rename t .config
      """
    ),
    (
      "a document whose name looks like a temporary file's is saved through two other names",
      """
      alice.0 save template
      alice.0 wait 4
      alice.0 save new.tmp
      alice.0 rename template old.tmp
      alice.0 rename new.tmp template
      alice.0 unlink old.tmp
      """
    ),
    (
      "a document whose name looks like a temporary file's is exchanged with one",
      """
      alice.0 save template
      alice.0 wait 4
      alice.0 save new.tmp
      alice.0 exchange new.tmp template
      alice.0 unlink new.tmp
      """
    ),
    (
      "what stood under a name that looks like a temporary file's is saved over a document",
      """
      alice.0 save doc
      alice.1 save report.new
      alice.1 wait 4
      alice.2 save report.new
      alice.2 rename report.new doc
      """
    ),
    (
      "an unlink while its program writes",
      """
      alice.0 save doc
      alice.0 open 0 doc rw
      alice.0 write 0
      alice.0 unlink doc
      alice.0 close 0
      """
    ),
    (
      "an unlink after another program saved",
      """
      alice.0 open 0 t creat
      alice.1 save t
      alice.0 truncate 0
      alice.0 unlink t
      """
    ),
    (
      "a save by rename while another program writes a young document",
      """
      alice.0 save doc
      alice.1 open 0 doc rw
      alice.1 append 0
      alice.0 save t
      alice.0 rename t doc
      alice.1 close 0
      """
    ),
    (
      "a save of what was read before another one's",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.0 save team/doc
      alice.0 open 0 team/doc rw
      alice.0 read 0
      bob.2 open 1 team/doc rw
      bob.2 append 1
      bob.2 close 1
      alice.0 writeKnown 0
      alice.0 close 0
      """
    ),
    (
      "a folder with a history enters a share, and one inside it is moved there",
      """
      alice.0 mkdir team
      alice.0 mkdir draft
      alice.0 mkdir draft/sub
      alice.0 invite team bob edit
      alice.0 save draft/sub/doc
      alice.0 save draft/sub/u
      alice.0 wait 16
      alice.0 save draft/sub/doc
      alice.0 unlink draft/sub/u
      alice.0 rename draft team/draft
      bob.2 rename team/draft/sub team/sub
      """
    ),
    (
      "a passing name is shared",
      """
      alice.0 save .doc.tmp
      alice.1 invite .doc.tmp carol edit
      """
    ),
    (
      "a folder moves from which a young file was renamed",
      """
      alice.0 mkdir team
      alice.1 save doc
      alice.0 rename doc team/.doc.tmp
      alice.0 rename team draft
      """
    ),
    (
      "a folder takes the place of one from which a young file was deleted",
      """
      alice.0 mkdir team
      alice.0 mkdir draft
      alice.0 mkdir draft/sub
      alice.0 save draft/sub/doc
      alice.3 unlink draft/sub/doc
      alice.3 rename team draft/sub
      """
    ),
    (
      "a quiet file is written again by another inode",
      """
      alice.1 save .doc.tmp
      alice.0 unlink .doc.tmp
      alice.0 open 0 .doc.tmp trunc
      alice.0 wait 16
      """
    ),
    (
      "a file goes just after a save that waits to be told of",
      """
      alice.0 mkdir team
      alice.1 save team/.doc.tmp
      alice.0 save team/.doc.tmp
      alice.1 unlink team/.doc.tmp
      """
    ),
    (
      "a known file loses its passing name",
      """
      alice.0 mkdir team
      alice.1 save team/.doc.tmp
      alice.0 label team/.doc.tmp
      alice.0 rename team/.doc.tmp team/doc
      alice.0 upkeep
      alice.0 rename team/doc team/t
      """
    ),
    (
      "a file that was told of early leaves no trace",
      """
      alice.0 open 0 doc.bak creat
      alice.0 purge nothing
      alice.0 unlink doc.bak
      """
    ),
    (
      "what was deleted before its folder was shared is written on",
      """
      alice.0 mkdir team
      alice.1 save team/doc
      alice.0 open 1 team/doc rw
      alice.0 unlink team/doc
      alice.1 open 2 .doc.tmp creat
      alice.3 invite team carol edit
      alice.1 write 1
      """
    ),
    (
      "what was deleted before its folder was shared is written on once that folder is deleted",
      """
      alice.0 mkdir team
      alice.0 mkdir draft
      alice.0 mkdir draft/sub
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.1 save draft/sub/t
      alice.0 open 1 draft/sub/t rw
      alice.0 unlink draft/sub/t
      alice.0 rmdir draft/sub
      alice.3 invite draft bob edit
      alice.3 rmdir draft
      alice.0 append 1
      """
    ),
    (
      "a temporary file that two people are writing takes a document's place",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.0 save doc
      alice.0 open 0 team/.doc.tmp creat
      bob.0 open 2 team/.doc.tmp rw
      bob.0 write 2
      alice.0 write 0
      alice.1 rename team/.doc.tmp doc
      """
    ),
    (
      "a temporary file that two people are writing is given a document's place by one of them",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.0 save doc
      alice.0 open 0 team/.doc.tmp creat
      bob.0 open 2 team/.doc.tmp rw
      bob.0 write 2
      alice.0 write 0
      alice.0 rename team/.doc.tmp doc
      """
    ),
    (
      "a document's remainder with a swap file's name is written, and its program replaces it",
      """
      alice.0 mkdir draft
      alice.0 save draft/u
      alice.1 rename draft/u doc
      alice.1 open 0 .doc.tmp creat
      alice.0 rename doc .doc.swp
      bob.2 close 0
      alice.0 open 0 .doc.swp rw
      alice.0 rename .doc.tmp doc
      alice.1 write 0
      alice.3 close 0
      alice.0 rename doc .doc.swp
      """
    ),
    (
      "a backup that two people saved passes through a temporary name",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      bob.0 save team/doc.bak
      alice.1 save team/doc.bak
      bob.2 save team/doc
      bob.2 exchange team/doc team/doc.bak
      alice.0 rename team/doc.bak team/.doc.tmp
      bob.2 rename team/doc team/t
      alice.0 rename team/.doc.tmp team/t
      """
    ),
    (
      "a backup that another program saved becomes the document by way of a temporary name",
      """
      alice.0 save doc
      alice.1 save doc.bak
      alice.2 save doc.bak
      alice.3 rename doc.bak .doc.tmp
      alice.3 rename .doc.tmp doc
      """
    ),
    (
      "a save that was begun before another account's first version, and truncated after",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      bob.2 open 0 team/t creat
      bob.2 append 0
      alice.1 save team/t
      bob.2 save team/t
      bob.2 truncate 0
      bob.2 unlink team/t
      """
    ),
    (
      "who emptied a document writes on after another program saved it",
      """
      alice.1 save doc
      alice.0 open 0 doc rw
      alice.0 truncate 0
      alice.0 flush 0
      alice.1 save doc
      alice.0 writeKnown 0
      """
    ),
    (
      "a document is renamed over a file that was linked to the name which the document had",
      """
      alice.1 save doc
      alice.0 wait 16
      alice.0 rename doc u
      alice.0 save .doc.tmp
      alice.0 link .doc.tmp doc
      alice.0 rename u .doc.tmp
      alice.0 wait 2
      alice.0 unlink .doc.tmp
      alice.0 save .doc.tmp
      """
    ),
    (
      "what another account builds on is undone by who saved it",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 open 0 team/doc creat
      alice.1 close 0
      bob.2 open 1 team/doc rw
      bob.2 write 1
      bob.2 fsync 1
      alice.0 open 2 team/doc rw
      alice.0 append 2
      bob.2 truncate 1
      bob.2 close 1
      alice.0 close 2
      """
    ),
    (
      "a file with a swap file's name is removed by another program than its maker's",
      """
      alice.0 save .doc.swp
      alice.0 wait 16
      alice.0 save .doc.swp
      alice.1 unlink .doc.swp
      """
    ),
    (
      "a young document is moved over a swap file and removed",
      """
      alice.0 save doc
      alice.1 open 0 .doc.swp creat
      alice.1 close 0
      alice.2 rename doc .doc.swp
      alice.2 unlink .doc.swp
      """
    ),
    (
      "a swap file that two programs saved takes the place of another file",
      """
      alice.0 mkdir team
      alice.1 save .doc.swp
      alice.0 save t
      alice.0 save .doc.swp
      alice.0 wait 16
      alice.1 rename t team/doc.bak
      alice.1 rename .doc.swp team/doc.bak
      """
    ),
    (
      "a save of what was read before its file and a document changed places",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 wait 16
      bob.2 open 0 team/doc rw
      bob.2 read 0
      alice.0 save team/t
      alice.0 exchange team/t team/doc
      alice.1 open 1 team/t rw
      alice.1 write 1
      alice.1 close 1
      bob.2 write 0
      bob.2 close 0
      """
    ),
    (
      "a save of what was read before its file became a document",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 wait 16
      alice.0 save team/t
      bob.2 open 0 team/t rw
      bob.2 read 0
      alice.1 open 1 team/t rw
      alice.1 write 1
      alice.1 close 1
      alice.0 rename team/t team/doc
      bob.2 write 0
      bob.2 close 0
      """
    ),
    (
      "a version that the close of another handle saved, while its writer goes on",
      """
      alice.0 open 0 doc trunc
      alice.0 open 1 doc creat
      alice.1 write 0
      alice.0 close 1
      alice.0 unlink doc
      """
    ),
    (
      "what was linked to a name that its program makes again",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      bob.2 open 1 team/doc trunc
      alice.0 link team/doc team/u
      alice.0 close 1
      alice.0 unlink team/doc
      alice.0 save team/doc
      bob.0 unlink team/u
      """
    ),
    (
      "what is written to a shared document while its program makes it again",
      """
      alice.1 save u
      alice.0 open 0 u rw
      alice.1 invite u bob view
      alice.0 unlink u
      alice.3 writeKnown 0
      alice.0 save u
      """
    ),
    (
      "what is written to a deleted document is told before somebody joins",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      bob.2 unlink team/doc
      alice.0 write 0
      alice.0 unshare team
      alice.1 invite team carol edit
      alice.3 recover team/t
      """
    ),
    (
      "a rename over another name that a replaced document was left with",
      """
      alice.0 save .doc.tmp
      alice.0 save doc
      alice.0 link doc t
      alice.0 rename .doc.tmp doc
      alice.0 open 0 t rw
      alice.1 writeKnown 0
      alice.0 rename doc t
      """
    ),
    (
      "a file whose making was told dissolves in a document just after its first save",
      """
      alice.0 mkdir team
      alice.0 open 1 doc creat
      alice.1 save t
      alice.0 rename t team/doc.bak
      alice.0 recover team/t
      alice.0 rename doc team/.doc.swp
      alice.1 close 1
      alice.0 rename team/.doc.swp team/doc.bak
      """
    ),
    (
      "a file takes a document's place just after its writer emptied it",
      """
      alice.1 open 0 doc creat
      alice.1 writeKnown 0
      alice.0 rename doc u
      alice.0 fsync 0
      alice.1 save doc
      alice.1 truncate 0
      alice.1 rename u doc
      """
    ),
    (
      "a deleted document that its writer goes on with comes back over another one",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.0 open 0 team/doc creat
      alice.1 save team/doc.bak
      alice.0 rename team draft
      alice.0 open 1 draft/doc trunc
      alice.0 write 1
      alice.3 write 1
      alice.1 unlink draft/doc
      alice.1 rename draft sub
      alice.0 write 0
      alice.3 write 0
      alice.0 writeKnown 0
      bob.2 save sub/.doc.tmp
      alice.0 save sub/doc
      alice.0 read 0
      alice.3 save sub/doc
      alice.3 flush 0
      alice.3 write 1
      alice.0 recover sub/doc
      bob.2 flush 1
      bob.2 rename sub/doc%20(2) sub/doc
      alice.1 write 1
      """
    ),
    (
      "a file that dissolved is closed by a program that wrote nothing",
      """
      alice.0 mkdir team
      alice.0 mkdir draft
      alice.0 invite team bob edit
      alice.0 rename draft team/draft
      alice.0 open 0 team/.doc.tmp creat
      alice.0 save team/draft/doc
      alice.0 rename team/draft/doc .doc.tmp
      alice.1 save team/.doc.tmp
      bob.2 save team/.doc.tmp
      alice.0 rename .doc.tmp team/doc
      alice.0 rename team/.doc.tmp team/doc
      """
    ),
    (
      "a save of what another account's session renewed since",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      alice.0 read 0
      bob.2 open 1 team/doc rw
      alice.3 append 1
      bob.2 fsync 0
      bob.2 write 1
      bob.2 append 0
      bob.2 label team/doc
      """
    ),
    (
      "a temporary name is made again after its file was renamed to the document's",
      """
      alice.0 save .doc.tmp
      alice.1 rename .doc.tmp doc
      alice.1 save t
      alice.1 rename t .doc.tmp
      """
    ),
    (
      "what is left of an empty document that another file became is replaced",
      """
      alice.1 save doc
      alice.0 wait 16
      alice.0 open 0 doc rw
      alice.0 truncate 0
      alice.0 fsync 0
      alice.0 close 0
      alice.0 wait 16
      alice.0 rename doc u
      alice.0 save t
      alice.0 rename t doc
      alice.0 save t
      alice.0 rename t u
      """
    ),
    (
      "a program writes for one person over what it saved for another one",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      bob.0 open 0 team/u creat
      bob.0 append 0
      bob.0 read 0
      alice.0 wait 60
      alice.0 open 1 team/u creat
      alice.0 write 1
      alice.0 unlink team/u
      alice.0 recover team
      bob.0 write 0
      """
    ),
    (
      "who replaced a file goes on writing to it after another program emptied it",
      """
      alice.1 open 0 doc creat
      alice.0 open 1 doc rw
      alice.1 save t
      alice.0 rename t doc
      alice.1 truncate 0
      alice.0 write 1
      """
    ),
    (
      "what another name is left with, where the oldest one was a backup's, is replaced",
      """
      alice.1 open 0 doc.bak creat
      alice.1 open 1 u creat
      alice.1 write 0
      alice.1 link doc.bak doc
      alice.0 rename u doc.bak
      alice.0 save u
      alice.1 truncate 0
      alice.1 close 0
      alice.0 rename u doc
      """
    ),
    (
      "a folder goes back to what a session had saved that goes on",
      """
      alice.1 open 0 u creat
      bob.0 writeKnown 0
      alice.0 invite u bob edit
      alice.1 open 2 u creat
      alice.1 save u
      bob.2 wait 2
      bob.0 write 2
      alice.1 goBack / 2000
      bob.2 look
      """
    ),
    (
      "what was written elsewhere, and deleted there, comes back into a share as it was",
      """
      alice.0 mkdir team
      alice.0 invite team carol view
      alice.0 open 1 team/doc trunc
      bob.2 wait 16
      alice.0 rename team/doc doc.bak
      alice.0 write 1
      alice.3 wait 60
      alice.1 unlink doc.bak
      alice.1 goBack team 70000
      carol.2 look
      """
    ),
    (
      "a close after a restoration to nothing proves no document",
      """
      alice.0 mkdir draft
      alice.0 open 0 draft/doc creat
      bob.2 write 0
      alice.3 goBack draft 4
      carol.1 close 0
      alice.1 save doc.bak
      alice.0 rename doc.bak draft/doc
      """
    ),
    (
      "what was renamed out of a folder before that was shared does not come back to it",
      """
      alice.0 mkdir team
      alice.1 save team/doc
      alice.0 rename team/doc u
      alice.0 invite team carol edit
      alice.0 save team/doc
      carol.2 look
      """
    ),
    (
      "who appends in a session, and then writes what it made of an earlier version, passes over nothing in silence",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      bob.2 open 1 team/doc rw
      alice.0 write 0
      alice.0 read 1
      alice.0 close 0
      carol.1 append 1
      bob.2 write 1
      bob.2 close 1
      """
    ),
    (
      "what was deleted elsewhere before its former folder was shared does not come back to that",
      """
      alice.0 mkdir team
      alice.0 save team/doc
      alice.0 link team/doc doc.bak
      alice.0 unlink team/doc
      alice.0 rename doc.bak u
      alice.0 invite team carol edit
      alice.0 unlink u
      alice.0 save team/doc
      """
    ),
    (
      "what got another name before its folder was shared, and was deleted, does not come back to it",
      """
      alice.0 mkdir team
      alice.0 mkdir team/draft
      alice.0 save team/u
      alice.0 link team/u doc.bak
      alice.0 rename team/u team/draft/doc
      alice.0 rename team/draft/doc doc
      alice.0 rename doc team/draft/.doc.swp
      alice.3 unlink team/draft/.doc.swp
      alice.0 rename doc.bak u
      alice.0 invite team carol edit
      alice.0 unlink u
      alice.0 save team/draft/doc
      """
    ),
    (
      "a scratch file that was made long ago is renamed to a document's name while it is open, and is that document",
      """
      alice.0 save .doc.swp
      alice.1 wait 60
      alice.0 open 0 .doc.swp creat
      alice.0 rename .doc.swp doc
      bob.0 append 0
      bob.0 wait 60
      alice.1 save doc.bak
      alice.0 rename doc.bak doc
      """
    ),
    (
      "what a participant appended moves to the end of the owner's save, and is kept when the document leaves the share",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      bob.2 open 1 team/doc rw
      alice.0 open 2 team/doc creat
      alice.0 append 1
      alice.0 save team/doc
      alice.0 rename team/doc doc.bak
      bob.2 fsync 2
      """
    ),
    (
      "one program reads, and another one of its account writes parts in place after somebody else saved",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      alice.0 read 0
      bob.2 open 1 team/doc rw
      bob.2 mapped 1
      alice.0 close 1
      alice.3 open 2 team/doc rw
      alice.0 writeKnown 2
      """
    ),
    (
      "one program reads and appends, and another one of its account writes parts in place after somebody else saved",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      alice.0 read 0
      bob.2 open 1 team/doc rw
      alice.0 append 0
      bob.2 mapped 1
      alice.0 close 1
      alice.3 open 2 team/doc rw
      alice.0 writeKnown 2
      """
    ),
    (
      "what one account appended moves to the end of another one's save, on which that one goes on to save",
      """
      alice.0 mkdir team
      alice.0 mkdir draft
      alice.0 invite team bob edit
      alice.1 save team/doc
      bob.2 open 1 team/doc rw
      alice.0 rename team draft/sub
      alice.0 open 2 draft/sub/doc rw
      alice.1 append 1
      carol.1 write 2
      alice.1 wait 16
      bob.2 append 2
      alice.1 wait 16
      """
    ),
    (
      "a document that was deleted from a shared folder is written while the folder is deleted, too, which then comes back",
      """
      alice.0 mkdir team
      alice.0 mkdir draft
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      bob.2 open 1 team/doc rw
      alice.1 unlink team/doc
      alice.1 rename draft team
      alice.0 write 0
      alice.1 append 0
      alice.0 takeOut / team doc
      """
    ),
    (
      "what a participant appended moves to the end of what the owner wrote once that one appends, and is kept there",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      bob.2 open 0 team/doc creat
      alice.3 rename team/doc team/u
      alice.1 open 2 team/u trunc
      alice.1 writeKnown 2
      bob.2 append 0
      bob.0 append 2
      alice.0 unshare team
      alice.0 fsync 2
      """
    ),
    (
      "who goes on to append after somebody else saved appends to that, and overwrites nothing",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      bob.2 open 1 team/doc rw
      alice.3 write 1
      alice.0 writeKnown 1
      alice.0 write 0
      alice.0 wait 16
      bob.2 writeKnown 1
      alice.1 append 0
      alice.0 close 1
      """
    ),
    (
      "a closed save stays when its document takes another one's name and a program that has it open writes on",
      """
      alice.0 open 2 doc creat
      alice.0 append 2
      alice.1 save doc
      alice.1 save t
      alice.0 rename doc t
      alice.0 append 2
      """
    ),
    (
      "a closed save stays when a program closes the document that wrote before it, and then writes on",
      """
      alice.0 mkdir draft
      alice.0 save draft/t
      alice.0 link draft/t draft/doc
      alice.0 open 2 draft/t trunc
      bob.2 write 2
      alice.0 save draft/doc
      alice.1 flush 2
      bob.2 mapped 2
      """
    ),
    (
      "who appends to a document whose name an emptied file took appends to what the document holds",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      bob.2 open 1 team/doc rw
      alice.1 save doc
      alice.0 rename team/doc .doc.swp
      alice.0 rename doc team/.doc.tmp
      alice.1 truncate 0
      alice.0 rename .doc.swp team/.doc.tmp
      bob.2 append 1
      """
    ),
    (
      "a closed save stays when a program that closed before it writes on",
      """
      alice.0 open 0 doc creat
      alice.0 open 2 doc creat
      bob.2 write 0
      alice.1 mapped 2
      bob.0 flush 0
      bob.0 close 2
      alice.0 mapped 0
      """
    ),
    (
      "what was brought back out of the trash goes there again, whoever deletes it",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      bob.2 save team/.doc.swp
      alice.1 unlink team/.doc.swp
      alice.3 wait 2
      bob.2 takeOut team .doc.swp team/doc
      bob.2 unlink team/doc
      """
    ),
    (
      "what somebody appended and may not save any more has nothing of what others save then",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      bob.2 open 1 team/doc rw
      alice.1 unlink team/doc
      bob.2 writeKnown 0
      alice.0 append 1
      alice.0 rmdir team
      alice.3 fsync 0
      """
    ),
    (
      "who emptied a document reads what others save after that",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      bob.2 open 0 team/doc trunc
      bob.2 close 0
      alice.1 open 0 team/doc rw
      alice.1 append 0
      alice.1 close 0
      bob.0 open 0 team/doc r
      bob.0 wait 16
      bob.0 close 0
      """
    ),
    (
      "who has a document open, and closed all that they wrote, reads what others save",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      bob.0 open 0 team/doc rw
      bob.2 open 1 team/doc trunc
      bob.2 write 1
      bob.2 close 1
      alice.1 save team/doc
      bob.0 read 0
      """
    ),
    (
      "who closes what they synced before somebody else saved reads that",
      """
      alice.0 mkdir team
      alice.0 invite team bob edit
      alice.1 save team/doc
      alice.0 open 0 team/doc rw
      alice.1 write 0
      alice.3 fsync 0
      bob.2 save team/doc
      alice.0 flush 0
      """
    ),
  ]
}
