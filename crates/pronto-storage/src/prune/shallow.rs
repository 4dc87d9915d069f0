//! Removes missing commits from the file `shallow`.

use super::{PruneRun, PrunedFile};
use pronto_repository::Result;
use pronto_repository::shallow;

impl PruneRun<'_> {
    pub(super) fn prune_shallow(&mut self) -> Result<()> {
        if !self.repository.is_shallow() || self.outcome.gave_up {
            return Ok(());
        }
        self.marks()?;
        let pruning = match self.options.dry_run {
            true => None,
            false => match self.begin()? {
                None => return Ok(()),
                pruning => pruning,
            },
        };
        let mut list = shallow::read(self.repository)?;
        let marks = self.marks()?;
        if pruning.is_some() {
            marks.look_again()?;
        }
        let gone = list.iter().filter(|id| !marks.contains(id)).copied();
        let gone: Vec<_> = gone.collect();
        for id in &gone {
            list.remove(id);
            (self.report)(&PrunedFile::Shallow(*id));
        }
        if pruning.is_some() && !gone.is_empty() {
            shallow::write(self.repository, &list)?;
        }
        Ok(())
    }
}
