//! The documents of local data: those that an index finds, or all of them.

use super::Evaluated;
use crate::data::{DataSet, FoundRecords, Key, Node, TreeId};
use crate::document::NodeRef;
use crate::limits::SCANNED_RECORDS_LIMIT;
use crate::matching::automaton::names::Names;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::Verifier;
use crate::segment::twig::local_data::*;
use crate::segment::twig::{STEP_ANY, STEP_NAME, part};

impl<'a> Verifier<'a> {
    /// The document nodes of local data, compiled at `at`: of the records that an equality finds, if there is one.
    pub(super) fn data(&mut self, at: u32, context: NodeRef) -> Result<Vec<Node>, WorkLimit> {
        let word = self.words[at as usize];
        let (is_collection, count) = (word >> 8 & 1 != 0, word >> 16);
        let name = self.text(self.words[at as usize + 1]);
        let Some(data) = self.trees.names().data() else { return Err(WorkLimit) };
        let place = data.sets.find(name).ok_or(WorkLimit)?;
        let (set, names) = (data.sets.at(place), &data.names[place]);
        if !is_collection && set.len() != 1 {
            return Err(WorkLimit);
        }
        let mut fewest: Option<Vec<FoundRecords<'_>>> = None;
        for access in 0..count {
            let access = part(self.words, at, 2 + access);
            if let Some(found) = self.records_by(access, set, names, context)?
                && fewest.as_ref().is_none_or(|fewest| records_of(&found) < records_of(fewest))
            {
                fewest = Some(found);
            }
        }
        let node = |record| Node { tree: TreeId::of_record(place, record), node: NodeRef::Document };
        match fewest {
            Some(found) => {
                self.budget.spend(records_of(&found))?;
                Ok(set.live(&found).into_iter().map(node).collect())
            }
            None if set.len() > SCANNED_RECORDS_LIMIT => Err(WorkLimit),
            None => {
                self.budget.spend(set.len())?;
                Ok(set.places().map(node).collect())
            }
        }
    }

    /// The records that an access finds; `None` if the values that it asks for are not indexed.
    fn records_by(
        &mut self,
        access: u32,
        set: &'a DataSet,
        names: &Names,
        context: NodeRef,
    ) -> Result<Option<Vec<FoundRecords<'a>>>, WorkLimit> {
        let word = self.words[access as usize];
        let count = word >> 8;
        let mut all = Vec::new();
        if word & 0xFF == ACCESS_ANY {
            for place in 1..=count {
                match self.records_by(part(self.words, access, place), set, names, context)? {
                    Some(found) => all.extend(found),
                    None => return Ok(None),
                }
            }
            return Ok(Some(all));
        }
        let value = self.words[access as usize + 1];
        let steps = key_steps(self.words, access, |kind, label| {
            move |name| match kind {
                STEP_NAME => names.name_of(label) == name,
                STEP_ANY => true,
                _ => names.of(name).pass_wildcard(label),
            }
        });
        let Some(paths) = set.paths(&steps) else { return Ok(None) };
        if paths.is_empty() {
            return Ok(Some(all));
        }
        let find = |key: Key<'_>, all: &mut Vec<FoundRecords<'a>>| {
            paths.iter().for_each(|&path| set.find(path, key, all));
        };
        let trees = self.trees;
        let evaluated = self.value(value, context)?;
        self.spend_values(&evaluated)?;
        self.budget.spend(evaluated.count() * paths.len())?;
        match evaluated {
            Evaluated::Nodes(nodes) => {
                nodes.into_iter().for_each(|node| find(Key::Text(trees.value_of(node)), &mut all));
            }
            Evaluated::Text(text) => find(Key::Text(&text), &mut all),
            Evaluated::Number(number) => find(Key::Number(number), &mut all),
            Evaluated::Boolean(_) | Evaluated::Items(_) => return Ok(None),
        }
        Ok(Some(all))
    }
}

/// How many records were found, some maybe several times.
fn records_of(found: &[FoundRecords<'_>]) -> usize {
    found.iter().map(FoundRecords::count).sum()
}
